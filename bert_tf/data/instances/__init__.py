"""Instances of pre-training, made of segments and masks."""

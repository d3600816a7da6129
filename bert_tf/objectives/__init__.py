"""Objectives: each owns its head, its labels and its loss."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "answer_span": ["AnswerSpan"],
    "base": ["Objective"],
    "feature_tagging": ["FeatureTagging"],
    "linear": ["LabelHead", "LinearHead", "SmoothedHead"],
    "masked_lm": ["MaskedLM"],
    "multiple_choice": ["MultipleChoice"],
    "sentence": ["Classification", "MultiLabel", "Regression", "SentencePrediction"],
    "tagging": ["Tagging"],
})

"""The parts of a network, written with keras.ops alone so that they run on every Keras backend."""

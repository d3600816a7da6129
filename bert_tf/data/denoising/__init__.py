"""T5's noise: inputs and targets of an encoder and a decoder."""

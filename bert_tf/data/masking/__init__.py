"""Maskings: a file for each way to choose and hide tokens, in records and while training."""

import lazy_loader

# The maskings by the names that `MaskTokens.masking` gives, with their classes.
MASKINGS = {
    "bert": "data.masking.bert.Masking", "coin": "data.masking.coin.Masking",
    "none": "data.masking.base.NoMasking", "next_token": "data.masking.base.NextTokens",
    **{name: f"models.{name}.masks.Masking" for name in (
        "albert", "deberta", "distilbert", "electra", "ernie", "modernbert", "roberta", "spanbert",
        "structbert", "xlnet")},
}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"base": ["Masking", "find"]})
__all__ += ["MASKINGS"]

"""Maskings: a file for each way to choose and hide tokens, in records and while training."""

import lazy_loader

# The maskings by the names that `MaskTokens.masking` gives, with their modules.
MASKINGS = {
    "bert": "data.masking.bert", "coin": "data.masking.coin", "none": "data.masking.none",
    "next_token": "data.masking.next_token", "albert": "models.albert.masks",
    "deberta": "models.deberta.masks", "distilbert": "models.distilbert.masks",
    "electra": "models.electra.masks", "ernie": "models.ernie.masks",
    "modernbert": "models.modernbert.masks", "roberta": "models.roberta.masks",
    "spanbert": "models.spanbert.masks", "structbert": "models.structbert.masks",
    "xlnet": "models.xlnet.masks",
}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"base": ["Masking", "find"]})
__all__ += ["MASKINGS"]

"""Recipes: the kinds of pre-training by name, one row of `RECIPES` in table.py each.

A recipe has a data half (tokenizer, segments, corruption), which decides the records, and a model
half (network, terms, learner). Rows are data and names: this package imports no model. The rows of
`DISTILLATIONS` in distillation.py, with terms of the same class, are the ways to distil a
fine-tuned model. A new name in a row needs its own code: a row of `data.segments.pairing.PAIRINGS`,
`heads.HEADS` or `data.masking.MASKINGS`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "models.t5.corruption": ["Denoising"],
    "recipes.distillation": ["DISTILLATIONS", "Distillation", "find_distillation",
                             "patience_layers"],
    "recipes.recipe": ["MaskTokens", "Recipe", "Segments", "Task", "Term", "load"],
    "recipes.table": ["RECIPES", "fill", "find", "from_description", "of_manifest"],
})

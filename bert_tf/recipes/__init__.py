"""Recipes: the kinds of pre-training by name, one row of `RECIPES` in table.py each.

A recipe has a data half (tokenizer, segments, corruption), which decides the records, and a model
half (network, terms, learner). Numbers such as rates, lengths and sizes are flags or the
configuration; a row may only give a flag another default. Rows are data and names: this package
imports no model. The rows of `DISTILLATIONS` in distillation.py, with terms of the same class, are
the ways to distil a fine-tuned model.

A new relative of BERT is a row here. A new name in the row needs its own code: a row of
`data.segments.pairing.PAIRINGS` or `heads.HEADS`, or a row of `data.masking.MASKINGS`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "recipes.corruption": ["MaskTokens", "Segments"],
    "models.t5.corruption": ["Denoising"],
    "recipes.distillation": ["DISTILLATIONS", "Distillation", "find_distillation",
                             "patience_layers"],
    "recipes.recipe": ["Recipe", "Task", "Term", "load"],
    "recipes.table": ["RECIPES", "fill", "find", "from_description", "of_manifest"],
})

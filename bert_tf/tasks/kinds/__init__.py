"""The kinds of tasks, a file for each or for a few that are alike; `bert_tf.tasks.task.KINDS` lists
them by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={
    "base": ["Kind"],
    "labelled": ["LabelledKind"],
    "multiple_choice": ["MultipleChoice"],
    "sentence": ["Classification", "MultiLabel", "Regression"],
    "span": ["Span"],
    "tagging": ["Tagging"],
})

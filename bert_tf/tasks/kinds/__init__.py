"""The kinds of tasks, a file for each or for a few that are alike."""

import lazy_loader

# Kinds by file; a new kind is a file and a row.
CLASSES = {
    "sentence": ["Classification", "MultiLabel", "Regression", "MultipleChoice", "Similarity"],
    "ranking": ["Ranking"],
    "candidates": ["AnswerSet", "Cloze", "WordInContext", "Coreference"],
    "pronouns": ["PronounRanking"],
    "tagging": ["Tagging"],
    "span": ["Span"],
    "text_to_text": ["TextToText"],
}

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"labelled": ["LabelledKind"], "table": ["KINDS"], **CLASSES})
__all__ += ["CLASSES"]

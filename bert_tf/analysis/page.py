"""One self-contained HTML page with the maps of all heads, whose tokens react to the mouse."""

import base64
import importlib.resources
import json
from collections.abc import Mapping, Sequence

import numpy as np

from bert_tf.analysis.reading import Reading
from bert_tf.analysis.statistics import Statistics, titles, token_kinds
from bert_tf.files import write_aside
from bert_tf.tokenization import Tokenizer

# The figures that the page shows for each head.
_FIGURES = ("cls", "sep", "punctuation", "left", "right", "entropy")


def names(ids: Sequence[int], tokenizer: Tokenizer) -> list[str]:
    """Returns the tokens without the character that marks a blank."""
    return [token.lstrip(tokenizer.blank) or token for token in tokenizer.tokens(ids)]


def pieces(ids: Sequence[int], tokenizer: Tokenizer) -> np.ndarray:
    """Returns whether each token continues the word before it: bool [n]. A token after a special
    one does not, although byte-level BPE has no blank before the first word."""
    special = set(tokenizer.vocabulary.special.values())
    after = np.array([token in special for token in tokenizer.tokens(ids)])
    return tokenizer.continues[np.asarray(ids)] & ~np.append(True, after[:-1])


def readable(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    """Joins tokens to a text, with a blank before each word."""
    text = "".join(name.removeprefix("##") if piece else f" {name}" for name, piece in zip(
        names(ids, tokenizer), pieces(ids, tokenizer)))
    # A token may be a blank alone.
    return " ".join(text.replace(tokenizer.blank, "").split())


def write_page(path: str, title: str, readings: Sequence[Reading], tokenizer: Tokenizer) -> None:
    """Writes the page of some texts, read with attention: their own, or with `from_ids` another's.
    Weights are stored as round(255 * sqrt(a)): an error is at most 0.4% of the weight's root."""
    template = importlib.resources.files("bert_tf.analysis") / "page.html"
    layers, heads = readings[0].attention.shape[:2]
    data = {"title": title, "layers": layers, "heads": heads,
            "texts": [_text(reading, tokenizer) for reading in readings]}
    text = json.dumps(data).replace("</", "<\\/")       # "</" would end the script
    with write_aside(path) as file:
        file.write(template.read_text("utf-8").replace("DATA", text, 1))


def _tokens(ids, tokenizer):
    return {"tokens": names(ids, tokenizer), "pieces": pieces(ids, tokenizer).astype(int).tolist()}


def _text(reading: Reading, tokenizer: Tokenizer) -> Mapping:
    statistics, attending, maps = Statistics(), {}, "encoder"
    if reading.from_ids is not None:
        attending, maps = {"from": _tokens(reading.from_ids, tokenizer)}, "cross"
    statistics.add(reading.attention, token_kinds(reading.input_ids, tokenizer.vocabulary), maps)
    figures, titled = statistics.result(), titles(tokenizer.vocabulary)
    layers, heads = reading.attention.shape[:2]

    def shown(name, layer, head):
        value = figures[name][layer, head]
        return f"{value:.2f} nats" if name == "entropy" else f"{value:.0%}"

    coded = np.round(255 * np.sqrt(np.clip(reading.attention, 0, 1))).astype(np.uint8)
    return {**_tokens(reading.input_ids, tokenizer), **attending,
            "attention": base64.b64encode(coded.tobytes()).decode(),
            "figures": [[{titled[name]: shown(name, layer, head)
                          for name in _FIGURES if name in figures}
                         for head in range(heads)] for layer in range(layers)]}

"""The answers to SQuAD's questions and the files that hold them, as the original's run_squad."""

import collections
import dataclasses
import json
import os

from bert_tf.errors import InputError
from bert_tf.files import write_json


@dataclasses.dataclass(frozen=True)
class Prediction:
    """The answers to one question.

    Attributes:
        id: of the question.
        text: the best answer; "" if only none was found.
        n_best: list of dicts text, probability, start_logit, end_logit, best first.
        null_odds: by how much the score of no answer exceeds that of `text`, or the score itself
            if `text` is ""; None where there must be an answer.
    """

    id: str
    text: str
    n_best: list
    null_odds: float | None = None

    def answer(self, null_score_diff_threshold=0.0):
        """The answer: "" if the odds of there being none exceed the threshold."""
        if self.null_odds is not None and self.null_odds > null_score_diff_threshold:
            return ""
        return self.text

    def describe(self, null_score_diff_threshold=0.0):
        """A dict of the `answer`, its `probability`, `n_best` and, of v2.0, `null_odds`."""
        answer = self.answer(null_score_diff_threshold)
        said = {"answer": answer, "probability": next(
            entry["probability"] for entry in self.n_best if entry["text"] == answer),
            "n_best": self.n_best}
        return said if self.null_odds is None else {**said, "null_odds": self.null_odds}


def write_predictions(folder, predictions, null_score_diff_threshold=0.0):
    """Writes predictions.json, nbest_predictions.json and, of v2.0, null_odds.json.

    Args:
        folder: where to.
        predictions: the `Prediction`s of a file.
        null_score_diff_threshold: see `Prediction.answer`.

    Raises:
        InputError: two questions have one id.
    """
    predictions = list(predictions)
    (name, count), = collections.Counter(p.id for p in predictions).most_common(1)
    if count > 1:
        raise InputError(f"question {name!r} stands {count} times in the file to predict; give "
                         "every question an id of its own.")
    files = {"predictions": {p.id: p.answer(null_score_diff_threshold) for p in predictions},
             "nbest_predictions": {p.id: p.n_best for p in predictions}}
    if any(p.null_odds is not None for p in predictions):
        files["null_odds"] = {p.id: p.null_odds for p in predictions}
    for name, content in files.items():
        write_json(os.path.join(folder, f"{name}.json"), content)


def read_predictions(path):
    """Reads predictions.json or null_odds.json: an object of question id -> text or number.

    The scorer checks what it holds.

    Raises:
        InputError: the file isn't an object of JSON.
    """
    try:
        with open(path, encoding="utf-8") as file:
            predictions = json.load(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read as JSON ({error}); give the predictions that "
                         "run_squad wrote.") from error
    if not isinstance(predictions, dict):
        raise InputError(f"{path} is not an object of question ids and answers; give the "
                         "predictions that run_squad wrote.")
    return predictions

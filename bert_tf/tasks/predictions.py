"""Files of predictions, one line an example, in the order of the task's file."""

import json

from bert_tf.files import write_aside
from bert_tf.metrics import entities


def describe(task, example, prediction, probabilities=None):
    """A prediction as JSON says it: what was predicted under the label's name, and how likely.

    Args:
        task: `Task`.
        example: `Example`.
        prediction: one of what bert_tf.tasks.decoding.decode returns.
        probabilities: float [L or C], of each label or choice; None of numbers and tags.
    """
    if task.kind == "regression":
        return {"value": round(float(prediction), 4)}
    if task.kind == "tagging":
        found = [{"type": kind, "text": " ".join(example.texts[start:end]),
                  "first": start, "last": end - 1} for start, end, kind in entities(prediction)]
        return {"words": example.texts, "tags": prediction, "entities": found}
    if task.kind == "multiple_choice":
        return {"choice": int(prediction), "probabilities": _rounded(probabilities)}
    named = dict(zip(task.labels, _rounded(probabilities)))
    if task.multi_label:
        return {"labels": [label for label, has in zip(task.labels, prediction) if has],
                "probabilities": named}
    return {"label": task.labels[prediction], "probabilities": named}


def _rounded(probabilities):
    return [round(float(value), 6) for value in probabilities]


def describe_all(task, examples, predictions, answers):
    """Yields what `describe` says of each example.

    Args:
        task: `Task`.
        examples: list of `Example`.
        predictions, answers: of bert_tf.tasks.decoding.decode.
    """
    likely = answers.get("probabilities") if task.kind != "tagging" else None
    for index, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
        yield describe(task, example, prediction, None if likely is None else likely[index])


def write_predictions(path, task, examples, predictions, answers):
    """Writes JSON lines: `index`, from 0, and what `describe` says.

    Args:
        path: the file.
        task, examples, predictions, answers: see `describe_all`.
    """
    with write_aside(path) as file:
        for index, said in enumerate(describe_all(task, examples, predictions, answers)):
            file.write(json.dumps({"index": index, **said}, ensure_ascii=False) + "\n")


def write_probabilities(path, probabilities):
    """Writes `test_results.tsv` of google-research/bert run_classifier.py: a line an example,
    the probabilities [N, L] apart by tabs."""
    with write_aside(path) as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in probabilities)


def write_tags(path, examples, gold, predicted):
    """Writes what conlleval reads: word, gold tag and predicted tag, a blank line a sentence.

    Args:
        path: the file.
        examples: list of `Example`.
        gold: list of lists of tags, or None where they are not known: then lines are of two
            columns.
        predicted: list of lists of tags.
    """
    words = [example.texts for example in examples]
    columns = [words, predicted] if gold is None else [words, gold, predicted]
    with write_aside(path) as file:
        for sentence in zip(*columns, strict=True):
            file.writelines(" ".join(line) + "\n" for line in zip(*sentence, strict=True))
            file.write("\n")

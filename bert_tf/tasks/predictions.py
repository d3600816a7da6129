"""Files of predictions, one line an example, in the order of the task's file."""

import json

from bert_tf.files import write_aside


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
        return {"words": example.texts, "tags": prediction}
    if task.kind == "multiple_choice":
        return {"choice": int(prediction), "probabilities": _rounded(probabilities)}
    named = dict(zip(task.labels, _rounded(probabilities)))
    if task.multi_label:
        return {"labels": [label for label, has in zip(task.labels, prediction) if has],
                "probabilities": named}
    return {"label": task.labels[prediction], "probabilities": named}


def _rounded(probabilities):
    return [round(float(value), 6) for value in probabilities]


def write_predictions(path, task, examples, predictions, answers):
    """Writes JSON lines: `index`, from 0, and what `describe` says.

    Args:
        path: the file.
        task: `Task`.
        examples: list of `Example`.
        predictions, answers: of bert_tf.tasks.decoding.decode.
    """
    likely = answers.get("probabilities", [None] * len(predictions))
    with write_aside(path) as file:
        for index, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            probabilities = None if task.kind == "tagging" else likely[index]
            line = {"index": index, **describe(task, example, prediction, probabilities)}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def write_probabilities(path, probabilities):
    """Writes `test_results.tsv` of google-research/bert run_classifier.py: a line an example,
    the probabilities [N, L] apart by tabs."""
    with write_aside(path) as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in probabilities)


def write_tags(path, examples, gold, predicted):
    """Writes what conlleval reads: word, gold tag and predicted tag, a blank line a sentence."""
    with write_aside(path) as file:
        for example, right, tags in zip(examples, gold, predicted, strict=True):
            file.writelines(f"{word} {tag} {guess}\n"
                            for word, tag, guess in zip(example.texts, right, tags, strict=True))
            file.write("\n")

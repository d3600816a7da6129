"""Writes tests/golden/squad/: what tf-models-official makes of hard questions.

Its squad_lib is the original's run_squad under another name, and its squad_evaluate_* are copies of
the official evaluation scripts. Run by hand where the extra `official` is installed:

    python -m tests.make_squad_golden
"""

import collections
import copy
import json
import os
import pathlib
import random
import tempfile

import numpy as np

FOLDER = pathlib.Path(__file__).parent / "golden" / "squad"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789éßσς中文½"
PIECES = ["the", "an", "##ing", "cafe", "café", "Cafe", "museum", "king", "##dom", "19", "##95"]
VOCABULARY = [*SPECIAL, *".,-()'!?#", *LETTERS, *(f"##{letter}" for letter in LETTERS), *PIECES]
WORDS = ["The", "the", "an", "a", "museum", "Kings", "kingdom.", "(1895-1943)", "café", "CAFÉ's",
         "cafe\u0301", "Straße", "ΟΔΟΣ", "中文", "x中y", "no\u00a0break", "½", "don't", "\u200d",
         "so\u00adft", "line\u2028end", "#hash##", "ﬁne", "[SEP]", "!!", "İx", "\u0301", "e-mail"]
SPACES = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\u202f", " \u3000 "]
CASES = {
    "lower_v2": {"do_lower_case": True, "version_2_with_negative": True, "max_seq_length": 40,
                 "doc_stride": 7, "max_query_length": 9, "n_best_size": 4,
                 "max_answer_length": 8, "threshold": 0.5, "seed": 1},
    "cased_v1": {"do_lower_case": False, "version_2_with_negative": False, "max_seq_length": 32,
                 "doc_stride": 40, "max_query_length": 6, "n_best_size": 4,
                 "max_answer_length": 30, "threshold": 0.0, "seed": 2},
}


def make_dataset(seed, negative):
    """A SQuAD file: 12 paragraphs of hard words, 4 questions each."""
    rng = random.Random(seed)

    def text(count):
        return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(count))

    def question(name, context):
        impossible = negative and rng.random() < 0.3
        first = rng.randrange(len(context))
        answer = context[first:first + rng.randint(1, 25)]
        if not answer.strip() or impossible:
            first, answer = context.index(context.split()[0]), context.split()[0]
        if rng.random() < 0.15:     # not at its place
            first = rng.randrange(len(context) - len(answer) + 1)
        answers = [] if impossible else [{"text": answer, "answer_start": first}]
        return {"id": name, "question": text(rng.randrange(8)), "answers": answers,
                **({"is_impossible": impossible} if negative else {})}

    paragraphs = []
    for number in range(12):
        context = rng.choice(["", " ", "\n"]) + text(rng.choice([1, 4, 12, 30, 40]))
        paragraphs.append({"context": context, "qas": [
            question(f"{number}-{turn}", context) for turn in range(4)]})
    return {"version": "test", "data": [{"title": "t", "paragraphs": paragraphs[:5]},
                                        {"title": "u", "paragraphs": paragraphs[5:]}]}


def make_logits(spans, length, seed):
    """float32 start and end logits [spans, length], full of ties."""
    logits = np.random.RandomState(seed).randint(-12, 12, [2, spans, length]) / 4
    logits[:, :, 0] += 2
    return logits.astype(np.float32)


def make_predictions(dataset, seed):
    """Predictions that are right, nearly right, empty and odd, and odds with ties."""
    rng = random.Random(seed)
    predictions, odds = {}, {}
    for question in questions(dataset):
        answer = "".join(a["text"] for a in question["answers"]) or "none"
        predictions[question["id"]] = rng.choice([
            answer, f"The {answer.upper()}!", answer[:-2], answer + " more", "", "an", " . ", "中",
            "a the museum", answer[::-1]])
        odds[question["id"]] = rng.choice([rng.gauss(0, 3), 0.0, 1.0, -1.5])
    return predictions, odds


def with_more_answers(dataset):
    """The dataset with a second answer to some questions: an article, or two words."""
    dataset = copy.deepcopy(dataset)
    for number, question in enumerate(questions(dataset)):
        if question["answers"] and number % 3:
            question["answers"].append({"text": ["", "the", "museum more"][number % 3],
                                        "answer_start": 0})
        elif question["answers"] and number % 2:
            question["answers"][0]["text"] = "The ."
    return dataset


def questions(dataset):
    """All questions of a dataset."""
    return [q for article in dataset["data"] for p in article["paragraphs"] for q in p["qas"]]


def main():
    """Writes a file for each case."""
    # pylint: disable=import-outside-toplevel,import-error
    from official.nlp.data import squad_lib
    from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0, tokenization

    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, options in CASES.items():
        negative = options["version_2_with_negative"]
        dataset = make_dataset(options["seed"], negative)
        with tempfile.TemporaryDirectory() as folder:
            path, vocabulary = os.path.join(folder, "squad.json"), os.path.join(folder, "vocab.txt")
            pathlib.Path(path).write_text(json.dumps(dataset), encoding="utf-8")
            pathlib.Path(vocabulary).write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
            tokenizer = tokenization.FullTokenizer(vocabulary, options["do_lower_case"])
            golden = {"options": options, "dataset": dataset}
            for mode in ("train", "predict"):
                examples = squad_lib.read_squad_examples(path, mode == "train", negative)
                features = []
                squad_lib.convert_examples_to_features(
                    examples, tokenizer, options["max_seq_length"], options["doc_stride"],
                    options["max_query_length"], mode == "train",
                    lambda feature, is_padding=False, kept=features: kept.append(feature),
                    batch_size=1)
                golden[mode] = {
                    "ids": [example.qas_id for example in examples],
                    "features": [[f.unique_id, sum(f.input_mask), sum(f.segment_ids),
                                  f.start_position or 0, f.end_position or 0, f.input_ids]
                                 for f in features]}
        # Here `examples` and `features` are those to predict.
        logits = make_logits(len(features), options["max_seq_length"], options["seed"])
        result = collections.namedtuple("Result", "unique_id start_logits end_logits")
        results = [result(f.unique_id, *logits[:, row].astype(float).tolist())
                   for row, f in enumerate(features)]
        golden["answers"], golden["n_best"], golden["null_odds"] = squad_lib.postprocess_output(
            examples, features, results, options["n_best_size"], options["max_answer_length"],
            options["do_lower_case"], negative, options["threshold"])
        golden["scores"] = []
        dataset = with_more_answers(dataset)
        for seed in range(4):
            predictions, odds = make_predictions(dataset, seed)
            if negative:
                scores = squad_evaluate_v2_0.evaluate(dataset["data"], predictions, odds)
            else:
                for turn in range(seed):
                    del predictions[f"{turn}-0"]
                scores = squad_evaluate_v1_1.evaluate(dataset["data"], predictions)
            golden["scores"].append({"predictions": predictions, "odds": odds, "scores": scores})
        with open(FOLDER / f"{name}.json", "w", encoding="utf-8") as file:
            json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))
            file.write("\n")


if __name__ == "__main__":
    main()

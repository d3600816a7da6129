"""SQuAD as google-research/albert and google-research/electra read and answer it."""

import json
import random
import unicodedata

import numpy as np
import pytest

from bert_tf.errors import InputError
from bert_tf.tasks import passages
from bert_tf.tasks.answer_spans import SpanOptions, cut_spans
from bert_tf.tasks.squad import read_paragraphs
from bert_tf.tasks.squad_answers import AnswerOptions, Prediction, find_file_answers
from bert_tf.tokenization import open_tokenizer

# Golden set: length, stride, longest question, whether questions may have no answer, vocabulary.
SETS = {"albert/squad_v2_s192": (192, 64, 32, True, "albert/spiece.model"),
        "albert/squad_v1_s96": (96, 32, 20, False, "albert/spiece.model"),
        "electra/features_squad_v2_s160": (160, 56, 24, True, "bert-base-uncased/vocab.txt")}
LABELS = ("start_position", "end_position", "is_impossible")


@pytest.fixture(name="case", scope="module", params=SETS)
def fixture_case(request, test_data):
    """System, golden arrays, paths of the files by mode, span options, v2 or not, tokenizer."""
    system, name = request.param.split("/")
    *sizes, negative, vocabulary = SETS[request.param]
    folder = test_data / "golden" / system
    paths = {"train": f"{name}.json", "predict": f"{name}.json"} if system == "albert" else {
        "train": "squad_v2_train.json", "dev": "squad_v2_dev.json"}
    return (system, np.load(folder / f"{name}.npz"),
            {mode: str(folder / path) for mode, path in paths.items()},
            SpanOptions(*sizes, system), negative,
            open_tokenizer(str(test_data / "vocabs" / vocabulary), True))


def test_features_are_the_originals(case):
    system, file, paths, options, negative, tokenizer = case
    for mode, path in paths.items():
        paragraphs = list(read_paragraphs(path, mode == "train", negative, system))
        spans = cut_spans(paragraphs, tokenizer, options)
        found = spans.features(0, len(spans.start), options, tokenizer.vocabulary)
        for name in ("input_ids", "input_mask", "segment_ids", *LABELS):
            theirs = f"{mode}_{name}" if system == "albert" else (
                f"{mode}/{name}" if name.startswith(("input", "segment"))
                else f"{mode}/squad_{name.replace('position', 'positions')}")
            if theirs in file.files:
                ours = found[name.replace("position", "positions")].reshape(file[theirs].shape)
                assert np.array_equal(ours, file[theirs]), (mode, name)
            else:
                assert mode != "train"


def test_answers_are_the_originals(case):
    system, file, paths, options, negative, tokenizer = case
    name = paths.get("predict", "squad_v2_").removesuffix(".json") + "_answers.json"
    if system == "electra":
        name, given = paths["dev"].replace("dev", "answers"), "given/"
        found = {key.removeprefix(given): file[key] for key in file.files if key.startswith(given)}
        found["answerable_logits"] = found.pop("answerable_logit")
    elif negative:
        found = {key: file[f"given_{key}"].reshape(-1, *shape) for key, shape in (
            ("start_top_index", [5]), ("start_top_log_probs", [5]), ("end_top_index", [5, 5]),
            ("end_top_log_probs", [5, 5]))}
        found["answerable_logits"] = file["given_cls_logits"]
    else:
        found = {key: file[f"given_{key}"] for key in ("start_logits", "end_logits")}
    with open(name, encoding="utf-8") as answers:
        expected = json.load(answers)
    predicted = list(find_file_answers(
        paths.get("predict") or paths["dev"], found, tokenizer, options,
        AnswerOptions(20, 30, negative, system)))
    threshold = expected.get("scores", {}).get("null_score_diff_threshold", np.inf)
    assert {p.id: p.answer(threshold) for p in predicted} == expected["predictions"]
    if negative:
        assert {p.id: p.null_odds for p in predicted} == expected["null_odds"]
    for p in predicted if "nbest" in expected else ():
        best = [[entry[key] for key in ("text", "start_logit", "end_logit")] for entry in p.n_best]
        assert best[:len(expected["nbest"][p.id])] == expected["nbest"][p.id]


def slowly_aligned(text, tokens, lower):
    """The alignment of google-research/albert, cell by cell."""
    def prepared(char):
        char = "".join(part for part in unicodedata.normalize("NFKD", char)
                       if not unicodedata.combining(part))
        return char.lower() if lower else char

    size, goal = len(text), len(tokens)
    reach = abs(size - goal) + 5
    for width in (reach, 2 * reach):
        length, step = {}, {}
        for i in range(size):
            for j in range(max(0, i - width), min(goal, i + width)):
                best = length.get((i - 1, j), 0)
                if i:
                    step[i, j] = "up"
                if length.get((i, j - 1), 0) > best:
                    best, step[i, j] = length[i, j - 1], "left"
                longer = length.get((i - 1, j - 1), 0) + 1
                if prepared(text[i]) == tokens[j] and longer > best:
                    best, step[i, j] = longer, "both"
                length[i, j] = best
        if length.get((size - 1, goal - 1), 0) > 0.8 * size:
            break
    pairs, i, j = [], size - 1, goal - 1
    while (i, j) in step:
        pairs += [(i, j)] if step[i, j] == "both" else []
        i, j = i - (step[i, j] != "left"), j - (step[i, j] != "up")
    return pairs if pairs and length[size - 1, goal - 1] >= 0.8 * size else None


def test_characters_are_aligned_as_by_the_slow_form():
    rng, dropped = random.Random(3), 0
    for _ in range(150):
        text = "".join(rng.choice("abcAB  é½,-") for _ in range(rng.randint(1, 40)))
        plain = unicodedata.normalize("NFKD", " " + " ".join(text.split())).lower()
        tokens = [char for char in plain if not unicodedata.combining(char)]
        for _ in range(rng.randint(0, 4)):
            place = rng.randrange(len(tokens))
            tokens[place:place + rng.randint(0, 1)] = rng.choice(["", "x", "a"])
        tokens = "".join(tokens) or " "
        found, expected = passages.align(text, tokens, True), slowly_aligned(text, tokens, True)
        assert (found is None) == (expected is None)
        dropped += found is None
        if found:
            forth, back = found
            assert [(i, forth[i]) for i in np.flatnonzero(forth >= 0)[::-1]] == expected
            assert all(back[j] == i for i, j in expected) and (back >= 0).sum() == len(expected)
    assert 0 < dropped < 75


def test_a_passage_without_counterparts_has_no_span(test_data, tmp_path):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "albert" / "spiece.model"), True)
    (tmp_path / "squad.json").write_text(json.dumps({"data": [{"paragraphs": [
        {"context": "½⅓¼" * 9, "qas": [{"id": "a", "question": "How much?"}]}]}]}), "utf-8")
    options = SpanOptions(64, 16, 8, "albert")
    paragraphs = list(read_paragraphs(str(tmp_path / "squad.json"), False))
    assert len(cut_spans(paragraphs, tokenizer, options).start) == 0
    found = {name: np.zeros((0, *shape)) for name, shape in (
        ("start_top_index", [2]), ("start_top_log_probs", [2]), ("end_top_index", [2, 2]),
        ("end_top_log_probs", [2, 2]), ("answerable_logits", []))}
    answer, = find_file_answers(str(tmp_path / "squad.json"), found, tokenizer, options,
                                AnswerOptions(20, 30, True, "albert"))
    assert answer.text == "" and answer.null_odds == 1e6
    assert answer.n_best == [{"text": "", "probability": 1.0, "start_logit": -1e6,
                              "end_logit": -1e6}]


def test_what_no_answer_means_at_the_threshold():
    loose, strict = (Prediction("a", "yes", [{"text": "yes", "probability": 1.0}], 0.5, is_strict)
                     for is_strict in (False, True))
    assert (loose.answer(0.5), strict.answer(0.5)) == ("yes", "")
    assert strict.answer(0.6) == "yes"
    assert strict.describe(0.0)["probability"] == pytest.approx(1 / (1 + np.exp(-0.5)))


def test_albert_reads_with_its_own_tokenizer_alone(test_data):
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased" / "vocab.txt"))
    with pytest.raises(InputError, match="--squad_style=albert and xlnet need a SentencePiece"):
        cut_spans([], tokenizer, SpanOptions(squad_style="albert"))

"""Answers in paragraphs from the command line: learning, scores, thresholds, what is refused."""

import contextlib
import json
import random
import types
from unittest.mock import Mock

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.data.batches.example_set import ExampleSet
from bert_tf.errors import InputError
from bert_tf.finetuning.model import ModelFlags
from bert_tf.finetuning.one_task import check_style
from bert_tf.finetuning.run import FineTuneRun, open_task
from bert_tf.predictor import Predictor
from bert_tf.tasks.answer_spans import SpanOptions
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.squad import read_answers
from bert_tf.tasks.squad_answers import (
    AnswerOptions,
    find_file_answers,
    write_predictions,
)
from bert_tf.tasks.squad_scorer import SCORERS, normalize, score_v1, score_v2
from bert_tf.tasks.task import Task
from bert_tf.tasks.task_flags import SquadFlags
from bert_tf.tokenization.vocabulary import Layout, Vocabulary
from bert_tf.tokenization.wordpiece import WordpieceTokenizer
from bert_tf.training.finetuning import FineTuning
from bert_tf.training.settings import FineTuneSettings
from tests.programs import share_out
from tests.training import tiny

KEYS = [f"k{i}" for i in range(8)]
FILLERS = [f"f{i}" for i in range(20)]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "where", "is", "?", *KEYS, *FILLERS]
FILES = ("predictions", "nbest_predictions", "null_odds", "metrics")


def squad_json(seed, negative=False):
    """Eight paragraphs with a key each, the answer to whose question is the word behind it; and a
    question for a key that is not there."""
    rng, paragraphs = random.Random(seed), []
    for number, key in enumerate(KEYS):
        words = rng.sample(FILLERS, 16)
        place = rng.randrange(14)
        context = " ".join([*words[:place], key, *words[place:]])
        answer = {"text": words[place], "answer_start": context.index(key) + len(key) + 1}
        qas = [{"id": f"{number}", "question": f"where is {key} ?", "answers": [answer]}]
        if negative:
            qas[0]["is_impossible"] = False
            qas.append({"id": f"{number}-none", "question": f"where is {KEYS[number - 1]} ?",
                        "answers": [], "is_impossible": True})
        paragraphs.append({"context": context, "qas": qas})
    return {"version": "test", "data": [{"title": "t", "paragraphs": paragraphs}]}


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """vocab.txt, config.json, and SQuAD files of v1.1, v2.0 and without answers."""
    folder = tmp_path_factory.mktemp("squad")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    tiny.config(vocab_size=len(VOCABULARY), max_position_embeddings=32,
                num_hidden_layers=1).to_json_file(folder / "config.json")
    bare = squad_json(1)
    for paragraph in bare["data"][0]["paragraphs"]:
        for question in paragraph["qas"]:
            del question["answers"]
    for name, data in (("v1", squad_json(1)), ("v2", squad_json(1, True)), ("bare", bare)):
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def prepare(**given):
    """The `Run` of the flags."""
    values = {name: str(value) if name.endswith(("file", "dir", "checkpoint")) else value
              for name, value in given.items()}
    return open_task(*share_out(values, SquadFlags, ModelFlags, FineTuneSettings))


def main(**given):
    """The script, in this process."""
    prepare(**given).carry_out()


def training(folder, name, output_dir, **changes):
    """Flags that train on a file and choose on it, from random weights."""
    return {"bert_config_file": folder / "config.json", "vocab_file": folder / "vocab.txt",
            "train_file": folder / f"{name}.json", "predict_file": folder / f"{name}.json",
            "output_dir": output_dir, "do_train": True, "do_eval": True, "max_seq_length": 32,
            "max_query_length": 8, "doc_stride": 8, "num_workers": 1, "learning_rate": 3e-3,
            "num_train_steps": 120, "iterations_per_loop": 120, "train_batch_size": 8, **changes}


@pytest.fixture(name="trained", scope="module")
def fixture_trained(folder, tmp_path_factory):
    """The output folder of a model that has learned v1.json by heart."""
    out = tmp_path_factory.mktemp("trained") / "out"
    main(**training(folder, "v1", out))
    return out


@pytest.fixture(name="negative", scope="module")
def fixture_negative(folder, tmp_path_factory):
    """The output folder of a model that has begun to learn v2.json."""
    out = tmp_path_factory.mktemp("negative") / "out"
    tf.config.run_functions_eagerly(True)
    main(**training(folder, "v2", out, version_2_with_negative=True, num_train_steps=4))
    tf.config.run_functions_eagerly(False)
    return out


def contents(out, *names):
    return {name: json.loads((out / f"{name}.json").read_text()) for name in names}


def test_eight_questions_are_learned_and_scored(folder, trained):
    answers, found = read_answers(folder / "v1.json"), contents(trained, "predictions", "metrics")
    scores = found["metrics"]["metrics"]
    assert scores["squad/f1"] > 90
    official = score_v1(answers, found["predictions"])
    assert scores == {f"squad/{name}": value for name, value in official.items()}
    assert f"squad_f1 = {scores['squad/f1']}\n" in (trained / "eval_results.txt").read_text()
    results = json.loads((trained / "results.json").read_text())
    assert results["headline"] == "squad/f1"
    assert results["metrics"]["squad/f1"]["best"] == scores["squad/f1"]
    assert not (trained / "null_odds.json").exists()


def test_the_same_command_again_keeps_the_threshold_even_if_it_stops_early(
        folder, negative, monkeypatch):
    before = (negative / "task.json").read_bytes()
    monkeypatch.setattr(FineTuneRun, "predict", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        main(**training(folder, "v2", negative, version_2_with_negative=True, num_train_steps=4))
    assert "null_score_diff_threshold" in json.loads(before)["options"]
    assert (negative / "task.json").read_bytes() == before


def test_another_scorer_is_kept_with_the_model(eagerly, folder, tmp_path):
    out = tmp_path / "out"
    main(**training(folder, "v1", out, num_train_steps=2, scorer="korquad"))
    answers = read_answers(folder / "v1.json")
    for place in (out, tmp_path / "scored"):
        if place != out:
            main(do_eval=True, init_checkpoint=out, output_dir=place,
                 predict_file=folder / "v1.json", num_workers=1)
        found = contents(place, "predictions", "metrics")
        official = score_v1(answers, found["predictions"], SCORERS["korquad"])
        assert official != score_v1(answers, found["predictions"])
        assert found["metrics"]["metrics"] == {
            f"squad/{name}": value for name, value in official.items()}
    with pytest.raises(InputError, match=r"another --scorer \(korquad, now cmrc\)"):
        main(**training(folder, "v1", out, num_train_steps=2, scorer="cmrc"))
    main(do_eval=True, init_checkpoint=out, output_dir=tmp_path / "squad", scorer="squad",
         predict_file=folder / "v1.json", num_workers=1)
    found = contents(tmp_path / "squad", "predictions", "metrics")
    assert found["metrics"]["metrics"]["squad/f1"] == score_v1(answers, found["predictions"])["f1"]
    # The scorer is of questions that all have an answer.
    main(**training(folder, "v2", tmp_path / "v2", num_train_steps=2, version_2_with_negative=True,
                    init_checkpoint=out, keep_head=True, bert_config_file=""))


def test_prediction_alone_knows_how_the_model_was_trained(folder, trained, tmp_path, capsys):
    main(predict_file=folder / "v1.json", init_checkpoint=trained, output_dir=tmp_path / "one",
         do_predict=True, num_workers=1)
    for name in ("predictions.json", "nbest_predictions.json", "metrics.json", "eval_results.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (trained / name).read_bytes()
    main(predict_file=folder / "bare.json", init_checkpoint=trained, output_dir=tmp_path / "two",
         do_predict=True, num_workers=1)
    assert contents(tmp_path / "one", *FILES[:2]) == contents(tmp_path / "two", *FILES[:2])
    assert not (tmp_path / "two" / "metrics.json").exists()
    said = capsys.readouterr().out
    assert "bare.json holds no answers" in said
    main(predict_file=folder / "v2.json", init_checkpoint=trained, output_dir=tmp_path / "three",
         do_predict=True, num_workers=1)
    assert "v2.json has questions without an answer, which" in capsys.readouterr().out
    assert contents(tmp_path / "three", "predictions")["predictions"].keys() == {
        *read_answers(folder / "v2.json")}
    # Some questions are shown with their answers, and with the right ones where they are known.
    given, right = contents(trained, "predictions")["predictions"], read_answers(folder / "v1.json")
    shown = [(name, question["question"]) for paragraph in squad_json(1)["data"][0]["paragraphs"]
             for question in paragraph["qas"] for name in [question["id"]]][::2]
    for name, question in shown:
        is_right = normalize(given[name]) in map(normalize, right[name])
        mark = "(right)" if is_right else f"(in the file: {right[name][0]})"
        assert f"  {question} -> {given[name]}  {mark}\n" in said
        assert f"  {question} -> {given[name]}\n" in said
    assert said.count(" -> ") == 2 * len(shown)


def test_the_threshold_is_chosen_kept_and_used(eagerly, folder, negative, tmp_path):
    found, answers = contents(negative, *FILES), read_answers(folder / "v2.json")
    chosen = found["metrics"]["null_score_diff_threshold"]
    assert SavedTask.read(negative).options["null_score_diff_threshold"] == chosen
    scores = found["metrics"]["metrics"]
    official = score_v2(answers, found["predictions"])
    assert {name: scores[f"squad/{name}"] for name in ("exact", "f1", "HasAns_f1", "NoAns_f1")} == {
        name: official[name] for name in ("exact", "f1", "HasAns_f1", "NoAns_f1")}

    def predict(**changes):
        main(predict_file=folder / "v2.json", init_checkpoint=negative, do_predict=True,
             num_workers=1, output_dir=tmp_path, **changes)
        return contents(tmp_path, *FILES)

    assert predict() == found
    odds = found["null_odds"]
    texts = {name: entries[0]["text"] or entries[1]["text"]
             for name, entries in found["nbest_predictions"].items()}
    answered = {threshold: {name: texts[name] if odds[name] <= threshold else "" for name in odds}
                for threshold in (0.0, *odds.values())}
    assert max(score_v2(answers, given)["f1"] for given in answered.values()) == (
        pytest.approx(scores["squad/f1"]))      # none is better
    middle = sorted(odds.values())[len(odds) // 2]
    other = predict(null_score_diff_threshold=middle)
    assert other["metrics"]["null_score_diff_threshold"] == middle
    assert other["predictions"] == answered[middle] != found["predictions"]
    assert SavedTask.read(negative).options["null_score_diff_threshold"] == chosen


def test_a_trial_is_judged_by_f1_at_the_threshold_of_the_flag(eagerly, folder, tmp_path):
    main(**training(folder, "v2", tmp_path, version_2_with_negative=True, num_train_steps=2,
                    null_score_diff_threshold=-1e6))
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["degenerate"] == list(results["trials"])
    metrics = results["trials"][results["best"]]["metrics"]
    assert metrics["squad/f1"] == metrics["squad/exact"] == 50 <= metrics["squad/best_f1"]
    assert set(contents(tmp_path, "predictions")["predictions"].values()) == {""}
    assert SavedTask.read(tmp_path).options["null_score_diff_threshold"] == -1e6


def golden_flags(test_data, folder, version, **changes):
    vocab_file = test_data / "vocabs/bert-base-uncased/vocab.txt"
    length, stride = {1: (128, 48), 2: (192, 64)}[version]
    tiny.config(vocab_size=30522, max_position_embeddings=192,
                num_hidden_layers=1).to_json_file(folder / "config.json")
    path = test_data / f"golden/squad_v{version}_seed1.json"
    return {**training(folder, "", folder / "out"), "vocab_file": vocab_file, "train_file": path,
            "predict_file": path, "max_seq_length": length, "doc_stride": stride,
            "max_query_length": 32, "num_train_steps": 1, **changes}


@pytest.mark.parametrize("version", [1, 2])
def test_real_questions(test_data, tmp_path, monkeypatch, version):
    logits = {}

    def predict(_, __, examples, measures):
        assert not measures
        rng = np.random.default_rng(version)
        for name in ("start_logits", "end_logits"):
            logits[name] = rng.normal(
                size=[examples.size, examples.max_seq_length]).astype(np.float32)
        return logits, {}

    for name, stand_in in (("train", Mock()), ("load", Mock()), ("predict", predict)):
        monkeypatch.setattr(FineTuning, name, stand_in)
    flags = golden_flags(test_data, tmp_path, version, version_2_with_negative=version == 2)
    main(**flags)
    for split in ("train", "predict"):
        golden = np.load(test_data / f"golden/squad_v{version}_seed1_{split}.npz")
        examples = ExampleSet(tmp_path / f"out/records/{split}.manifest.json")
        for name in ("input_ids", "input_mask", "segment_ids"):
            assert (examples[name] == golden[name]).all()
        if split == "train":
            for name in ("start_position", "end_position"):
                assert (examples[f"{name}s"][:, 0] == golden[name]).all()
    (tmp_path / "again").mkdir()
    metrics = contents(tmp_path / "out", "metrics")["metrics"]
    tokenizer = WordpieceTokenizer(Vocabulary.from_file(flags["vocab_file"]))
    predictions = find_file_answers(
        flags["predict_file"], dict(zip(("start_logits", "end_logits"), logits.values())),
        tokenizer,
        SpanOptions(flags["max_seq_length"], flags["doc_stride"], 32),
        AnswerOptions(version_2_with_negative=version == 2))
    write_predictions(tmp_path / "again", predictions,
                      metrics.get("null_score_diff_threshold", 0.0))
    for path in (tmp_path / "again").iterdir():
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()


def test_questions_left_out_or_cut_are_told(folder, tmp_path, capsys):
    data = squad_json(1)
    first, *others = (p["qas"][0] for p in data["data"][0]["paragraphs"])
    first["answers"][0]["text"] = "elsewhere"
    for question in others:
        question["question"] = "where " * 9
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    prepare(**training(folder, "v1", tmp_path / "out", train_file=path))
    told = capsys.readouterr().out
    assert "train: 7 questions" in told and "1 question left out, 7 cut to fit" in told
    assert f"note: {path}: question '0' is left out" in told
    assert f"note: {path}: question '1' is cut to --max_query_length=8" in told
    assert "and 3 more notes" in told and "train.manifest.json" in told


@pytest.mark.parametrize("changes, words", [
    ({"do_eval": False, "do_predict": True, "predict_file": ""},
     "--predict_file must be given for --do_eval and --do_predict"),
    ({"predict_file": "absent.json"}, "--predict_file: there is no file absent.json; check"),
    ({"train_file": ""}, "--train_file must be given for --do_train"),
    ({"predict_file": "{folder}/bare.json"}, "--do_eval: .*bare.json holds no answers"),
    ({"predict_file": "{folder}/config.json"}, "config.json"),
    ({"train_file": "{folder}/vocab.txt"}, "vocab.txt"),
    ({"train_file": "{folder}/v2.json"}, "'0-none' has no answer.*--version_2_with_negative"),
    ({"predict_file": "{folder}/v2.json"}, "'0-none' has no correct answer"),
    ({"doc_stride": 0}, "--doc_stride is 0"),
    ({"scorer": "cmrc", "version_2_with_negative": True}, "--scorer=cmrc is for questions that"),
    ({"max_query_length": 29}, "--max_seq_length is 32, but a question"),
    ({"max_seq_length": 33}, "--max_seq_length is 33; it must be from 4 to 32"),
    ({"squad_style": "xlnet"}, "--squad_style=xlnet is for models whose class token is the last"),
    ({"n_best_size": 0}, "--n_best_size is 0"), ({"max_answer_length": 0}, "--max_answer_length"),
    ({"label_smoothing": 0.1}, "--label_smoothing is for labels, and the task squad has none"),
])
def test_refused_before_work_starts(folder, tmp_path, changes, words):
    changes = {name: value.format(folder=folder) if isinstance(value, str) else value
               for name, value in changes.items()}
    with pytest.raises(InputError, match=words):
        main(**training(folder, "v1", tmp_path / "out", **changes))
    assert not list(tmp_path.glob("out/trials")) and not list(tmp_path.glob("out/records/train.*"))


@pytest.mark.parametrize("cls_last, style, negative, is_refused", [
    (True, "bert", True, False), (True, "xlnet", True, False), (True, "albert", False, False),
    (True, "albert", True, True), (True, "electra", False, True), (False, "xlnet", False, True),
    (False, "albert", True, False), (False, "electra", True, False), (False, None, None, False)])
def test_styles_that_do_not_fit_the_place_of_the_class_token(cls_last, style, negative, is_refused):
    tokenizer = WordpieceTokenizer(Vocabulary(VOCABULARY, layout=Layout(cls_last=cls_last)))
    options = {"squad_style": style, "version_2_with_negative": negative}
    with pytest.raises(InputError, match=f"--squad_style={style}") if is_refused else (
            contextlib.nullcontext()):
        check_style(types.SimpleNamespace(tokenizer=tokenizer), options)


def test_models_of_another_kind_are_refused(folder, trained, tmp_path):
    flags = {"predict_file": folder / "v2.json", "init_checkpoint": trained,
             "output_dir": tmp_path / "out", "do_predict": True}
    with pytest.raises(InputError, match="was trained without questions that have no answer"):
        main(**flags, version_2_with_negative=True)
    other = tmp_path / "other"
    other.mkdir()
    for path in trained.iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes())
    SavedTask(Task("x", "tagging", {}, ("a",)), 32, True).write(other)
    with pytest.raises(InputError, match="is a model for tagging, not for answers in paragraphs"):
        main(**{**flags, "init_checkpoint": other})


@pytest.mark.parametrize("order", [1, -1])
def test_a_model_that_knows_no_answer_is_averaged_with_its_like(folder, trained, negative, tmp_path,
                                                                order):
    files = SquadFlags(predict_file=str(folder / "v1.json"))
    with pytest.raises(InputError, match="only one of .* was trained with --version_2_with_neg"):
        open_task(files, ModelFlags(
            do_eval=True, ensemble=[str(trained), str(negative)][::order], num_workers=1),
            FineTuneSettings(output_dir=str(tmp_path)))


def test_a_head_with_beams_is_learned_kept_and_used(eagerly, folder, tmp_path):
    out = tmp_path / "out"
    main(**training(folder, "v2", out, version_2_with_negative=True, squad_style="electra",
                    start_n_top=4, num_train_steps=3))
    found = contents(out, *FILES[:3])
    options = SavedTask.read(out).options
    assert (options["squad_style"], options["start_n_top"]) == ("electra", 4)
    asked = [(paragraph, question) for paragraph in squad_json(1, True)["data"][0]["paragraphs"]
             for question in paragraph["qas"]]
    predicted = Predictor(out)([(q["question"], p["context"]) for p, q in asked])
    for (_, question), one in zip(asked, predicted, strict=True):
        assert one["answer"] == found["predictions"][question["id"]]
        assert one["null_odds"] == pytest.approx(found["null_odds"][question["id"]], abs=1e-5)
        best = found["nbest_predictions"][question["id"]]
        assert [entry["text"] for entry in one["n_best"]] == [entry["text"] for entry in best]
    with pytest.raises(InputError, match="was trained with --squad_style=electra; leave"):
        main(predict_file=folder / "v2.json", init_checkpoint=out, do_predict=True,
             output_dir=tmp_path / "other", squad_style="bert")

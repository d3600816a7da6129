"""Every recipe from text to a trained model: records, training, going on, devices, and refusals."""

import contextlib
import dataclasses
import functools
import io
import json
import math
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import checkpoints, data, flags, networks, recipes
from bert_tf.bert.objective import MaskedLM
from bert_tf.checkpoints import checksummed
from bert_tf.config import EncoderConfig, read_config
from bert_tf.data import masking
from bert_tf.errors import InputError
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.networks.encoder import BertEncoder
from bert_tf.training import Learner, distribution, resume, save_model
from bert_tf.training.reporting import read_metrics
from bert_tf.training.settings import TrainSettings
from data_prep import create_pretraining_data, verify_records
from data_prep.create_pretraining_data import PretrainingDataFlags, RowFlags, StreamFlags
from run_scripts import commands, run_pretraining
from run_scripts.analysis import pretraining
from run_scripts.pretraining.flags import PretrainingFlags
from tests import processes
from tests.data_prep.conftest import TOKENS, WORDS
from tests.programs import refused, share_out
from tests.rounding import assert_same
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("eagerly")
LENGTH, PREDICTIONS, BATCH, STEPS = 16, 3, 22, 3
# How the records of each case are made; the rows of the table first.
CASES = {**{name: {"recipe": name, **({"task": next(iter(recipe.tasks))} if recipe.tasks else {})}
            for name, recipe in recipes.RECIPES.items()},
         **{name: {"recipe": name, "dupe_factor": 1}
            for name in ("gpt", "sa_lstm", "distilbert", "modernbert", "deberta", "deberta_v3")},
         **dict.fromkeys(("xlnet", "xlnet, denoising"), {
             "recipe": "xlnet", "dupe_factor": 1, "text": "short.txt"}),
         "elmo": {"recipe": "elmo", "dupe_factor": 2},
         **{name: {"recipe": name, "dupe_factor": 1, "text": "lines.txt", "segments": "line_texts"}
            for name in ("lm_lstm", "sa_lstm")},
         "bert, dynamic": {"recipe": "bert", "masking": "dynamic"},
         "bert_wwm, dynamic": {"recipe": "bert_wwm", "masking": "dynamic"},
         "one segment": {"recipe": "bert", "segments": "doc_sentences"}}
# The vocabulary of the teacher and of what it teaches, where it learns, too.
MIXED = {"recipe": "dual_training", "second_vocab": "vocab.txt"}
# One case of each network and learner.
DISTINCT = {(recipe.network, recipe.learner): name
            for name, recipe in reversed(recipes.RECIPES.items())}.values()
# What goes on after a kill, on two devices: these, and masks that are drawn.
WHOLE = {*DISTINCT, "bert, dynamic"}
# Those whose graph on two devices is more than layers one after the other.
COMPILED = ("electra", "distilbert", "universal", "gpt", "t5", "xlnet", "elmo", "lm_lstm")
TERMS = dict.fromkeys(("one segment", "xlnet, denoising"), ["masked_lm"])
ROWS = ("elmo", "lm_lstm", "sa_lstm")
STREAMS = {**dict.fromkeys(("xlnet", "xlnet, denoising"),
                          StreamFlags(bsz_per_host=BATCH, use_eod=False)),
           **dict.fromkeys((*ROWS, "transformer_xl"), RowFlags(bsz_per_host=BATCH))}
# Optimizers other than adamw. bert_adamw has fewer operations, for networks that are trained often.
OPTIMIZERS = {"albert": "lamb", "t5": "adafactor", "elmo": "elmo_adagrad",
              "lm_lstm": "averaged_adam",
              **dict.fromkeys(("electra", "mobilebert", "distilbert", "dual_training", "universal",
                               "gpt", "xlnet", "transformer_xl", "deberta", "deberta_v3"),
                              "bert_adamw")}
# Sizes with which a recipe trains all of its terms.
NETWORKS = {"universal": {"recurrence_type": "act", "act_max_steps": 2},
            "gpt": {"embedding_dropout_prob": 0},
            **dict.fromkeys(("xlnet", "transformer_xl"), {"mem_len": 8}),
            "deberta": {"num_hidden_layers": 2, "position_buckets": 8},
            "deberta_v3": {"position_buckets": 8},
            "mobilebert": {"num_feedforward_networks": 2},
            "mobilebert_transfer": {"num_feedforward_networks": 2},
            "elmo": {"filters": (), "projection_dim": 4, "dim": 6, "n_layers": 1},
            **dict.fromkeys(ROWS[1:], {"embedding_size": 4, "hidden_size": 6})}


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    """A vocabulary, a text and the configuration of a model of one layer without dropout."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    rng = np.random.default_rng(1)
    (folder / "text.txt").write_text("\n".join(
        "".join(" ".join(rng.choice(WORDS, 6)) + ".\n" for _ in range(5)) for _ in range(6)),
        encoding="utf-8")
    (folder / "pairs.tsv").write_text("".join(
        f"{' '.join(rng.choice(WORDS, 4))}\t{' '.join(rng.choice(WORDS, 3))}\t{label}\n"
        for label in ("strong", "random", "weak") * 4))
    (folder / "short.txt").write_text("".join((folder / "text.txt").open().readlines()[:18]))
    (folder / "lines.txt").write_text("".join(
        " ".join(line.split()[:4]) + "\n" for line in (folder / "text.txt").open().readlines()[:6]))
    tiny.config(vocab_size=len(TOKENS), num_hidden_layers=1).to_json_file(folder / "config.json")
    return folder


@pytest.fixture(name="records", scope="module")
def fixture_records(folder):
    @functools.cache
    def make(case):
        path = folder / case.replace(", ", "_").replace(" ", "_") / "r.tfrecord"
        given = dict(MIXED if case == "mixed" else
                     CASES.get(case, {"recipe": "ernie2", "task": case}))
        if case in ("discourse_relation", "ir_relevance"):
            given["text"] = "pairs.tsv"
        if "second_vocab" in given:
            given["second_vocab_file"] = str(folder / given.pop("second_vocab"))
        recipe = recipes.find(given["recipe"])
        create_pretraining_data.main(recipes.fill(
            PretrainingDataFlags, **{
                "input_file": [str(folder / given.pop("text", "text.txt"))],
                "output_file": [str(path)],
                "vocab_file": str(folder / "vocab.txt"), "max_seq_length": LENGTH,
                **({"max_predictions_per_seq": PREDICTIONS} if recipe.chooses_tokens else {}),
                **({"do_lower_case": True} if recipe.tasks else {}),
                "dupe_factor": 2, "num_workers": 1, **given}), None,
            *([STREAMS[case]] if case in STREAMS else []))
        return str(path)
    return make


def train_into(output_dir, path, **changes):
    """Trains on the records of a path; returns the last checkpoint's tensors."""
    values = {
        "input_file": [path], "output_dir": str(output_dir), "max_seq_length": LENGTH,
        "max_predictions_per_seq": PREDICTIONS, "do_train": True, "train_batch_size": BATCH,
        "eval_batch_size": BATCH,
        "num_train_steps": STEPS, "num_warmup_steps": 2, "save_checkpoints_steps": 2,
        "iterations_per_loop": 2, "learning_rate": 1e-2, "random_seed": 0, **changes}
    given, training, *settings = share_out(
        values, PretrainingFlags, TrainSettings, *run_pretraining.settings_of(values))
    run_pretraining.main(given, training, None, *settings)
    saved = resume.checkpoints(values["output_dir"])
    return checksummed.read(saved[-1])[0] if saved else {}      # only evaluation saves none


@pytest.fixture(name="train")
def fixture_train(folder, tmp_path):
    """Function that trains on the records of a path; returns the last checkpoint's tensors."""
    def run(path, output="out", **changes):
        return train_into(tmp_path / output, path, **{
            "bert_config_file": str(folder / "config.json"), **changes})
    return run


@pytest.fixture(name="teacher", scope="module")
def fixture_teacher(folder):
    """A model with a masked LM, of the size of those that are trained, in a folder."""
    config = tiny.config(vocab_size=len(TOKENS), num_hidden_layers=1)
    path = folder / "teacher"
    path.mkdir()
    save_model(str(path), Learner(BertEncoder(config), [MaskedLM(config)]))
    return str(path)


@pytest.fixture(name="options_of", scope="module")
def fixture_options_of(folder, records, teacher):
    """Function that returns the flags of a case; those of its records are the defaults."""
    def options_of(case):
        recipe = recipes.find(CASES[case]["recipe"])
        config = folder / f"{recipe.name}.json"
        tiny.config_of(recipe, vocab_size=len(TOKENS), **{
            "num_hidden_layers": 1, **NETWORKS.get(recipe.name, {})}).to_json_file(config)
        slots = masking.find(recipe.corruption).slots(PREDICTIONS, LENGTH)
        options = {"terms": TERMS.get(case, []), "bert_config_file": str(config),
                   "max_predictions_per_seq": slots if recipe.chooses_tokens else 20,
                   "optimizer": OPTIMIZERS.get(recipe.name, "adamw")}
        if recipe.name == "deberta_v3":
            options |= {"generator_hidden_size": 1.0, "generator_layers": 1.0}
        if recipe.learner.endswith(("Distiller", "DualTraining")):
            options["teacher"] = teacher
        if recipe.learner.endswith("DualTraining"):
            options["teacher_input_file"] = [records("mixed")]
        return options
    return options_of


@pytest.fixture(name="whole", scope="module")
def fixture_whole(folder, records, options_of):
    """Function that trains and evaluates a case once, without a stop; returns the folder, the last
    checkpoint's tensors and what was printed."""
    @functools.cache
    def run(case):
        path, options = records(case), options_of(case)
        output, said = folder / f"of_{case}", io.StringIO()
        if case not in STREAMS:
            options["eval_batch_size"] = STEPS * BATCH
        if case not in WHOLE:
            options |= {"num_train_steps": 1, "num_warmup_steps": 0}
        with contextlib.redirect_stdout(said):
            tensors = train_into(output, path, do_eval=True, **options)
        return output, tensors, said.getvalue()
    return run


@pytest.mark.parametrize("case", CASES)
def test_a_recipe_trains_goes_on_and_shares_its_work(
        case, records, options_of, whole, train, mirrored, monkeypatch, tmp_path, capsys):
    path = records(case)
    verify_records.main(verify_records.VerifyRecordsFlags(
        input_file=[path.replace("tfrecord", "manifest.json")]))
    assert "sound" in capsys.readouterr().out
    recipe = recipes.find(CASES[case]["recipe"])
    assert data.RecordSet.open([path], "input_file").size <= STEPS * BATCH   # an epoch, or several
    folder, expected, said = whole(case)
    assert said.startswith(f"recipe {recipe.name} ({recipe.source}), as the manifest")
    assert ("masks are drawn while training, at most 3" in said) == (
        masking.find(recipe.corruption).hides and ("dynamic" in case or recipe.corruption.dynamic))
    of_run, of_model = (checkpoints.read(str(folder / name)).tensors
                        for name in ("", "model.keras"))
    assert of_run.keys() == of_model.keys()
    if case not in WHOLE:
        return
    # As after a kill: the last checkpoint is gone.
    (tmp_path / "again").mkdir()
    half = resume.checkpoints(str(folder))[0]
    shutil.copy(half, tmp_path / "again")
    again = train(path, output="again", **options_of(case))
    assert "resuming at step 2" in capsys.readouterr().out
    assert_same(again, expected)
    monkeypatch.setattr(distribution, "make_strategy", lambda *_: mirrored)
    # The graph depends on the network and the learner alone.
    tf.config.run_functions_eagerly(case not in COMPILED)
    two = train(path, output="two", stop_at_step=2, **options_of(case))
    assert tiny.largest_difference(checksummed.read(half)[0], two) < 1e-6


def test_a_second_stage_has_longer_rows_and_another_theta(
        folder, records, options_of, whole, train, tmp_path):
    path, (first, tensors, _) = tmp_path / "long.tfrecord", whole("modernbert")
    create_pretraining_data.main(recipes.fill(
        PretrainingDataFlags, "modernbert", input_file=[str(folder / "text.txt")],
        output_file=[str(path)], vocab_file=str(folder / "vocab.txt"), max_seq_length=4 * LENGTH,
        max_predictions_per_seq=PREDICTIONS, num_workers=1))
    config = tmp_path / "config.json"
    dataclasses.replace(read_config(options_of("modernbert")["bert_config_file"]),
                        max_position_embeddings=4 * LENGTH, global_rope_theta=160_000.0
                        ).to_json_file(config)
    for begun in (first, first / "model.keras"):
        second = train(str(path), output=begun.name, init_checkpoint=str(begun), train_batch_size=4,
                       max_seq_length=4 * LENGTH, bert_config_file=str(config), learning_rate=0.0,
                       optimizer="adamw", num_train_steps=1, num_warmup_steps=0)
        assert {name: value.tolist() for name, value in second.items() if "learner/" in name} == {
            name: value.tolist() for name, value in tensors.items() if "learner/" in name}
        made = read_config(tmp_path / begun.name / "bert_config.json")
        assert (made.global_rope_theta, made.local_rope_theta) == (160_000.0, 10_000.0)


@pytest.mark.parametrize("case, changes, said", [
    ("xlnet", {"perm_size": 4}, "--perm_size (0, now 4)"),
    ("distilbert", {"distill_temperature": 3.0, "restrict_ce_to_mask": True},
     "--distill_temperature (1.0, now 3.0), --restrict_ce_to_mask (False, now True)")])
def test_other_settings_are_noticed_when_a_run_goes_on(
        case, changes, said, records, options_of, whole, train, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    shutil.copy(resume.checkpoints(str(whole(case)[0]))[-1], tmp_path / "out")
    for more in ({}, changes):
        train(records(case), **options_of(case), **more)
        assert (f"resuming with another {said}" in capsys.readouterr().out) == bool(more)


def test_a_recurrent_run_is_evaluated_as_it_was_on_any_text(
        records, options_of, whole, train, monkeypatch, tmp_path, capsys):
    """The averages of its weights, with the frequencies of the words that it learned from."""
    folder, trained, _ = whole("lm_lstm")
    # What other commands begin with.
    assert_same(tiny.weights_at(folder), tiny.weights_at(folder / "model.keras"))
    wanted = (folder / "eval_results.txt").read_text()
    counts = "learner/sequence_lstm/embeddings/token_counts"
    other = 1 + np.arange(len(TOKENS))
    assert not np.array_equal(trained[counts], other)
    monkeypatch.setattr(data.manifest, "token_counts", lambda manifest: other)
    begun = {**options_of("lm_lstm"), "init_checkpoint": str(folder)}
    train(records("lm_lstm"), do_train=False, do_eval=True, optimizer="adamw", **{
        name: value for name, value in begun.items() if name != "optimizer"})
    found = (tmp_path / "out" / "eval_results.txt").read_text()
    assert found == wanted.replace(f"global_step = {STEPS}", "global_step = 0")
    again = train(records("lm_lstm"), output="again", num_train_steps=1, num_warmup_steps=0,
                  **begun)
    assert np.array_equal(again[counts], trained[counts])
    assert "the model keeps the word frequencies of --init_ch" in capsys.readouterr().out


@pytest.mark.parametrize("case", ["distilbert", "mobilebert", "small_vocabulary"])
def test_a_teacher_with_other_tokens_is_told(
        case, folder, records, options_of, teacher, train, tmp_path, monkeypatch, capsys):
    """Where it reads the ids of the network; in small_vocabulary only its weights are compared."""
    monkeypatch.setattr("bert_tf.training.train.Run.train", lambda run: None)
    told, options = tmp_path / "teacher", options_of(case)
    if case == "mobilebert":        # of the network's own sizes
        told.mkdir()
        config = read_config(options["bert_config_file"])
        save_model(str(told), Learner(networks.build(config), [MaskedLM(config)]))
    else:
        shutil.copytree(teacher, told)
    for name, tokens in (("same", [*TOKENS, "[unused]"]), ("other", [*TOKENS[:9], *TOKENS[:8:-1]])):
        (told / "vocab.txt").write_text("\n".join(tokens) + "\n")
        train(records(case), output=name, **{**options, "teacher": str(told)})
        assert (f"warning: --teacher={told} has {TOKENS[-1]!r} as token 9, but the records have "
                f"{TOKENS[9]!r}" in capsys.readouterr().out) == (
                    name == "other" and case != "small_vocabulary")


def test_weights_with_other_tokens_are_told(
        records, options_of, whole, train, tmp_path, monkeypatch, capsys):
    """A vocabulary of the same size; a free token of the model may be a word of the records."""
    monkeypatch.setattr("bert_tf.training.train.Run.train", lambda run: None)
    told = shutil.copytree(whole("bert")[0], tmp_path / "told")
    for rest in (["[unused0]", *TOKENS[10:]], TOKENS[:8:-1]):
        (told / "vocab.txt").write_text("\n".join([*TOKENS[:9], *rest]) + "\n")
        train(records("bert"), **options_of("bert"), init_checkpoint=str(told))
        assert (f"warning: --init_checkpoint={told} has {rest[0]!r} as token 9, but the records "
                f"have {TOKENS[9]!r}" in capsys.readouterr().out) == (rest[0] == TOKENS[-1])


def test_progressive_transfer_goes_on(records, train, tmp_path, capsys):
    """A run that was stopped while it trained the first layer ends as one that was not."""
    recipe = recipes.find("mobilebert_transfer")
    config = tiny.config_of(recipe, vocab_size=len(TOKENS), num_hidden_layers=2,
                            num_feedforward_networks=1)
    config.to_json_file(tmp_path / "config.json")
    (tmp_path / "teacher").mkdir()
    save_model(str(tmp_path / "teacher"), Learner(networks.build(config), [MaskedLM(config)]))
    options = {"bert_config_file": str(tmp_path / "config.json"), "num_warmup_steps": 0,
               "teacher": str(tmp_path / "teacher"), "layer_wise_warmup": True,
               "num_distill_steps": 4, "num_train_steps": 4, "optimizer": "progressive_lamb",
               "learning_rate_schedule": "constant", "save_checkpoints_steps": 1}
    path = records("mobilebert_transfer")
    whole = train(path, **options)
    first, *_, last = resume.checkpoints(str(tmp_path / "out"))
    (tmp_path / "again").mkdir()
    shutil.copy(first, tmp_path / "again")
    capsys.readouterr()
    again = train(path, output="again", **options)
    assert "resuming at step 1" in capsys.readouterr().out
    assert_same(again, whole)
    before, after = (checksummed.read(name)[0] for name in (first, last))
    moved = {layer for layer in range(2) for name in before
             if name.startswith("learner/") and f"encoder/layer_{layer}/" in name
             and not np.array_equal(before[name], after[name])}
    assert moved == {0, 1}


def test_tasks_are_trained_in_turns(folder, records, train, mirrored, monkeypatch, tmp_path,
                                    capsys):
    """A batch of one task a step, as the schedule has it; the same after a kill."""
    recipe = recipes.find("ernie2")
    paths = [records(task) for task in recipe.tasks]
    config = folder / "ernie2.json"
    tiny.config(vocab_size=len(TOKENS), num_hidden_layers=1, **recipe.sizes).to_json_file(config)
    options = {"bert_config_file": str(config), "input_file": paths, "num_train_steps": 8,
               "save_checkpoints_steps": 1, "keep_checkpoint_max": 8, "iterations_per_loop": 1,
               "num_warmup_steps": 0, "task_schedule": [
                   "knowledge_masking=1", "capitalization=0/1", "token_document=0/1",
                   "sentence_reordering=0/2", "sentence_distance=0/1", "discourse_relation=0/1",
                   "ir_relevance=0/1"]}
    whole = train("", do_eval=True, **options)
    assert "steps by stage: knowledge_masking 1/0, capitalization 0/1" in capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text(
        ).splitlines()]
    names = ["masked_lm", *list(recipe.tasks)[1:]]
    # A task that was not trained has no loss in the line, and not a loss of 0.
    learned = [[name for name in names if f"{name}/loss" in row] for row in rows]
    assert learned == [[names[i]] for i in (0, 3, 1, 2, 4, 5, 6, 3)] + [names]
    for held_out, tasks in ((paths, len(names)), (paths[-1:], 1)):
        shown = pretraining.show(str(tmp_path / "out"), str(folder / "vocab.txt"), paths,
                                 held_out, "", "")
        assert len(shown.scores) == 2 * tasks
        assert shown.scores[-2][0] == "ir relevance" and shown.scores[-1][2] == 1 / 3
    saved = {int(os.path.basename(path)[11:20]): path
             for path in resume.checkpoints(str(tmp_path / "out"))}
    (tmp_path / "again").mkdir()
    shutil.copy(saved[6], tmp_path / "again")
    again = train("", output="again", **options)
    assert_same(again, whole)
    assert "another" not in capsys.readouterr().out
    train("", output="again", **{**options, "task_schedule": ["together"]})
    assert "resuming with another --task_schedule\n" in capsys.readouterr().out
    monkeypatch.setattr(distribution, "make_strategy", lambda *_: mirrored)
    two = train("", output="two", stop_at_step=2, **options)
    assert tiny.largest_difference(checksummed.read(saved[2])[0], two) < 1e-5
    with pytest.raises(InputError, match="--train_batch_size=44: the run took 44 records in 2 st"):
        train("", output="two", **options, train_batch_size=2 * BATCH)
    with pytest.raises(InputError, match="--task_schedule has 3 steps, but --num_train_steps is 8"):
        train("", output="bad", **{**options, "task_schedule": ["capitalization=3"]})


def test_terms_can_be_left_out(records, whole, train):
    both = whole("bert")[1]
    one = train(records("bert"), terms=["masked_lm"], num_train_steps=1, num_warmup_steps=0)
    assert set(both) - set(one) == {name for name in both if "next_sentence" in name} != set()


@pytest.mark.parametrize("case, lines", [
    ("bert, dynamic", ["masked LM", "  unigram baseline", "next sentence", "  majority baseline"]),
    ("structbert", ["masked LM", "  unigram baseline",
                    "sentence order", "  majority baseline"]),
    ("one segment", ["masked LM", "  unigram baseline"])])
def test_what_was_learned_is_shown(case, lines, folder, records, whole, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    path, text, picture = records(case), tmp_path / "text.txt", tmp_path / "curves.png"
    text.write_text("the house a tree the walk the cafe a tree\n" * 6, encoding="utf-8")
    output = str(whole(case)[0])
    capsys.readouterr()
    learned = pretraining.show(output, str(folder / "vocab.txt"), path, path,
                                    str(text), str(picture))
    said = capsys.readouterr().out.splitlines()
    assert [line[:24].rstrip() for line in said[:said.index("")]] == ["training records", *lines]
    assert sum("[MASK]" in line and "stood there" not in line for line in said) == 6
    assert len(learned.scores) == len(lines) and len(learned.guesses) == 6
    evaluation = read_metrics(output, "eval")[-1]
    (_, loss, _, likely), (_, unigram, _, by_frequency), *others = learned.scores
    assert likely == evaluation["masked_lm/perplexity"] and said[1].endswith(f" {likely:,.1f}")
    assert by_frequency == pytest.approx(math.exp(unigram)) or case == "structbert"
    assert likely == pytest.approx(math.exp(loss)) or case == "structbert"
    assert all(none is None for *_, none in others)
    assert isinstance(learned.helps, bool) and bool(learned) == learned.helps
    assert any("not better than its baseline" in line for line in said) != learned.helps
    assert picture.read_bytes().startswith(b"\x89PNG")


# What recipes and flags have to do with each other

def test_terms_name_objectives(teacher):
    for recipe in recipes.RECIPES.values():
        terms = run_pretraining.choose_terms(recipe, [])
        assert terms == tuple(term for term in recipe.terms if not term.by_name)
        sizes = tiny.config_of(recipe, vocab_size=len(TOKENS), **{
            "num_hidden_layers": 1, **NETWORKS.get(recipe.name, {})})
        settings = None
        if recipe.learner.endswith(("Distiller", "DualTraining")):
            kind, = run_pretraining.settings_of({"recipe": recipe.name})
            settings = kind(teacher=teacher)
        elif recipe.name == "deberta_v3":       # its generator has half of the layers
            settings = GeneratorSettings(generator_hidden_size=1.0, generator_layers=1.0)
        learner = recipes.load(recipe.learner).of_terms(sizes, terms, "float32", settings)
        assert [type(objective).__name__ for objective in learner.objectives] == [
            term.objective for term in terms]


def test_a_configuration_of_another_network_is_refused(folder, monkeypatch):
    monkeypatch.setitem(recipes.RECIPES, "other", recipes.find("bert").vary(network="Other"))
    path = str(folder / "config.json")
    job = PretrainingFlags([str(folder / "text.txt")], path, recipe="other")
    with pytest.raises(InputError, match=f"{path} describes a BertEncoder, but recipe bert trains"):
        run_pretraining.read_network(job)


@pytest.fixture(name="sized")
def fixture_sized(monkeypatch):
    monkeypatch.setitem(recipes.RECIPES, "sized", dataclasses.replace(
        recipes.find("bert"), name="sized", sizes={"model_type": "albert", "embedding_size": 16},
        presets={"tiny": {"hidden_dropout_prob": 0}, "huge": {"hidden_size": 4096,
                                                              "num_attention_heads": 64}}))


def test_a_published_size_has_the_vocabulary_of_the_records(sized, records):
    def config(size, recipe="sized"):
        return run_pretraining.read_network(
            PretrainingFlags([records("bert")], model_size=size, recipe=recipe))

    tiny_size = EncoderConfig.preset("tiny", vocab_size=len(TOKENS))
    assert config("tiny", "bert") == tiny_size
    assert config("tiny") == dataclasses.replace(
        tiny_size, model_type="albert", embedding_size=16, hidden_dropout_prob=0)
    assert (config("huge").hidden_size, config("huge").embedding_size) == (4096, 16)
    with pytest.raises(InputError, match="recipe sized: there is no size 'giant'.*large, huge"):
        config("giant")


def test_a_configuration_gets_the_type_of_the_recipe(sized, records, folder, tmp_path):
    def config(path, recipe="sized"):
        return run_pretraining.read_network(PretrainingFlags(
            [records("bert")], str(path), recipe=recipe))

    assert config(folder / "config.json").model_type == "albert"
    distilbert = config(folder / "config.json", "distilbert")
    assert (distilbert.pooler_type, distilbert.type_vocab_size) == ("first_token_relu", 1)
    tiny.config(model_type="electra").to_json_file(tmp_path / "electra.json")
    with pytest.raises(InputError, match="model_type electra, but recipe sized trains .* albert"):
        config(tmp_path / "electra.json")


@pytest.fixture(name="another")
def fixture_another(monkeypatch):
    monkeypatch.setitem(recipes.RECIPES, "another", dataclasses.replace(
        recipes.find("bert"), name="another", defaults={
            "dupe_factor": 1, "learning_rate": 5e-4, "train_batch_size": 128}))


def test_a_recipe_gives_defaults_in_python(another):
    given = {"output_dir": "x", "train_batch_size": 64}
    filled = recipes.fill(TrainSettings, "another", **given)
    assert filled == TrainSettings(learning_rate=5e-4, **given)
    job = recipes.fill(PretrainingFlags, "another", bert_config_file="c", input_file=["r"])
    assert job == PretrainingFlags(["r"], "c", recipe="another")
    with pytest.raises(InputError, match="there is no recipe 'none'"):
        recipes.fill(TrainSettings, "none", output_dir="x")


def test_the_defaults_of_a_run_are_those_of_its_recipe_and_records(another, records):
    defaults = run_pretraining.recipe_defaults
    assert defaults({"input_file": [records("bert")]}) == ("recipe bert", {})
    assert defaults({"input_file": ["absent"]}) == ("recipe bert", {})
    assert defaults({"recipe": "another"})[1]["learning_rate"] == 5e-4
    assert defaults({"input_file": [records("bert_wwm, dynamic")]}) == (
        "recipe bert_wwm", {"max_predictions_per_seq": PREDICTIONS})
    assert defaults({"input_file": [records("roberta")]})[1]["max_seq_length"] == LENGTH
    text = flags.help_text("", flags.CommandLine.open(
        ["x", "--recipe=another"], [PretrainingFlags, TrainSettings], defaults))
    assert "--learning_rate=float   (default: 0.0005, from recipe another)" in text


# Refusals

def test_settings_of_another_recipe_are_refused(records, folder):
    job = PretrainingFlags([records("bert")], str(folder / "config.json"), do_train=True)
    with pytest.raises(InputError, match="GeneratorSettings are no settings of recipe bert; its se"
                       "ttings are none"):
        run_pretraining.main(job, TrainSettings("out"), None, GeneratorSettings(temperature=2.0))


@pytest.mark.parametrize("case, changes, parts", [
    ("bert", {"masking": "dynamic"}, ["--masking=dynamic", "already masked", "r.tfrecord",
                                      "--recipe=bert --masking=dynamic"]),
    ("bert", {"recipe": "electra"}, ["--recipe=electra draws masks", "already masked", "bert"]),
    ("bert", {"recipe": "spanbert"}, ["--recipe=spanbert draws masks", "already masked"]),
    ("spanbert", {"recipe": "bert"}, ["--recipe=bert has different segments from recipe spanbert"]),
    ("bert", {"recipe": "structbert"}, ["--recipe=structbert has different segments from"]),
    ("bert, dynamic", {"recipe": "electra"}, ["--recipe=electra has different segments from"]),
    ("bert", {"recipe": "bert_wwm"}, ["--recipe=bert_wwm has different corruption from recipe",
                                      "r.tfrecord", "make them again with --recipe=bert_wwm"]),
    ("bert", {"recipe": "albert"}, ["--recipe=albert has different tokenizer from recipe bert",
                                    "r.tfrecord", "make them again with --recipe=albert"]),
    ("albert", {"recipe": "bert"}, ["--recipe=bert has different segments from recipe albert",
                                    "r.tfrecord", "make them again with --recipe=bert"]),
    ("bert, dynamic", {"masking": "static"}, ["--masking=static needs masks", "r.tfrecord"]),
    ("bert", {"terms": ["masked_lm", "order"]}, ["--terms", "no order", "next_sentence"]),
    ("one segment", {}, ["hold no next_sentence_labels", "next_sentence reads",
                         "--terms=masked_lm"]),
    ("bert", {"max_predictions_per_seq": 4}, ["--max_predictions_per_seq is 4",
                                              "; give --max_predictions_per_seq=3."]),
    ("bert", {"max_predictions_per_seq": 4, "recipe": "ltr"}, [
        "--max_predictions_per_seq is 4", "3"]),
    ("xlnet", {"terms": ["permutation_lm", "masked_lm"]}, [
        "--terms: masked_lm hides", "permutation_lm shows"]),
    ("xlnet", {"terms": ["masked_lm"], "perm_size": 4}, ["--perm_size is for permutation_lm"]),
    *((case, {"batch_size_warmup_min_size": BATCH, "batch_size_warmup_tokens": 9}, [
        "--batch_size_warmup_min_size is for records in any order"])
      for case in ("xlnet", "elmo", "ernie2")),
    *((case, {"max_predictions_per_seq": 4}, [
        f"of recipe {CASES[case]['recipe']}, which predicts all tokens"])
      for case in ("ltr", "gpt", "t5", "elmo", "lm_lstm", "transformer_xl")),
])
def test_what_does_not_go_together_is_refused(
        records, options_of, train, tmp_path, case, changes, parts):
    own = {} if case.startswith(("bert", "one", "span", "albert")) else options_of(case)
    with refused(*parts):
        train(records(case), **{**own, **changes})
    assert not os.path.exists(tmp_path / "out")


def test_records_without_a_manifest(records, train, tmp_path, capsys):
    for case in ("bert", "bert, dynamic"):
        path = tmp_path / f"{case}.tfrecord"
        path.write_bytes(open(records(case), "rb").read())
        if case == "bert":
            train(str(path), num_train_steps=1, num_warmup_steps=0)
            said = capsys.readouterr().out
            assert said.startswith("recipe bert (arXiv:1810.04805); no manifest names ")
            assert np.isfinite(json.loads(
                (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()[0])["loss"])
        else:
            with pytest.raises(InputError, match="hold no masks, and no manifest beside"):
                train(str(path), output="o")


@pytest.mark.parametrize("case", ["elmo", "lm_lstm", "transformer_xl", "xlnet"])
def test_records_in_order_need_their_manifest(records, options_of, train, tmp_path, case):
    path = tmp_path / "r.tfrecord"
    path.write_bytes(open(records(case), "rb").read())
    options = {**options_of(case), "recipe": recipes.find(CASES[case]["recipe"]).name}
    with pytest.raises(InputError, match="are in order, but no manifest beside .*r.tfrecord"):
        train(str(path), **options)


@pytest.mark.parametrize("case, keys, value", [
    ("bert, dynamic", ("recipe", "corruption", "masking"), None),
    ("xlnet", ("recipe", "corruption", "masking"), 1), ("xlnet", ("options", "reuse_len"), None),
    ("xlnet", ("options", "bi_data"), "x"), ("ernie2", ("options", "masked_lm_prob"), []),
    ("ernie2", ("recipe", "segments", "pairing"), "of_a_later_version")])
def test_odd_values_in_a_manifest_are_refused(
        records, options_of, train, tmp_path, case, keys, value):
    folder = tmp_path / "records"
    shutil.copytree(os.path.dirname(records(case)), folder)
    path, = folder.glob("*.manifest.json")
    *outer, last = keys
    whole = json.loads(path.read_text())
    functools.reduce(dict.__getitem__, outer, whole)[last] = value
    path.write_text(json.dumps(whole))
    shard = str(folder / os.path.basename(records(case)))
    options = options_of(case)
    with pytest.raises(InputError, match="manifest|this version"):
        run_pretraining.recipe_defaults({"input_file": [shard]})
        train(shard, **options)


def test_examples_of_a_task_are_refused(folder, train, tmp_path):
    (tmp_path / "train.csv").write_text("text,label\na,x\nb,y\n")
    main, settings = commands.parse([
        "bert-finetune", "--records_only", f"--train_file={tmp_path / 'train.csv'}",
        "--text_a_column=text", "--label_column=label", f"--vocab_file={folder / 'vocab.txt'}",
        "--num_workers=1", "--max_seq_length=16", f"--output_dir={tmp_path}"])
    main(*settings)
    with pytest.raises(InputError, match="--input_file: .*train.tfrecord holds examples of a task"):
        train(str(tmp_path / "train.tfrecord"))


# Imports

def test_a_run_from_random_weights_loads_no_checkpoint_format(folder, records, tmp_path):
    loaded = set(processes.Process("""
import sys
from run_scripts import run_pretraining
try:
    run_pretraining.run()
finally:
    print("loaded:", *sys.modules)
""", [f"--bert_config_file={folder / 'config.json'}", f"--input_file={records('bert')}",
      f"--output_dir={tmp_path / 'out'}", f"--max_seq_length={LENGTH}", "--do_train",
      f"--max_predictions_per_seq={PREDICTIONS}", "--num_train_steps=1", "--num_warmup_steps=0",
      "--train_batch_size=8"], eagerly=True).finish().rpartition("loaded:")[2].split())
    assert "bert_tf.training.train" in loaded and (tmp_path / "out" / "model.keras").exists()
    formats = {name for name in loaded if name.startswith("bert_tf.checkpoints.")}
    assert formats <= {f"bert_tf.checkpoints.{name}" for name in (
        "checksummed", "config_file", "names", "rules", "safetensors_files", "weights")}

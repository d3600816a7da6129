"""From file to file: every format, every head, every type of number, bit for bit."""

import dataclasses
import errno
import functools
import json
import pathlib
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

import bert_tf
from bert_tf import checkpoints, networks, training
from bert_tf.bert.objective import MaskedLM, SentencePrediction
from bert_tf.checkpoints import Changes, checksummed, convert, names
from bert_tf.checkpoints.conversion import write_around
from bert_tf.checkpoints.weights import variables
from bert_tf.config import T5Config, XLNetConfig
from bert_tf.config.sizes import letters, numbers
from bert_tf.errors import InputError
from bert_tf.files import writing
from bert_tf.heads import MAX_LSTMS
from bert_tf.models.electra.objective import AllTokensLM, ReplacedToken
from bert_tf.models.ernie.objective import (
    Capitalization,
    DiscourseRelation,
    IrRelevance,
    SentenceDistance,
    SentenceReordering,
    TokenDocument,
)
from bert_tf.models.mtdnn.objective import StochasticAnswer
from bert_tf.models.recurrent.objective import StepClassification
from bert_tf.models.spanbert.objective import SpanBoundary
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.answer_span import AnswerSpan
from bert_tf.objectives.attentive_classification import AttentiveClassification
from bert_tf.objectives.candidate_lm import CandidateLM
from bert_tf.objectives.classification import Classification, MultiLabel, MultipleChoice, Regression
from bert_tf.objectives.span_comparison import SpanComparison
from bert_tf.objectives.tagging import FeatureTagging, Tagging
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from bert_tf.training.learners.learner import Learner
from bert_tf.training.optimizers.adam import AdamWeightDecay
from bert_tf.training.trainer import Trainer
from run_scripts import export_model
from run_scripts.export_model import ExportFlags
from tests.processes import full_disk
from tests.training import tiny

GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
FORMATS = [name for name, form in checkpoints.FORMATS.items() if form.writable
           and name not in ("paddle", "openai", "elmo")]    # which hold one network only
DECODER, WORDS = "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"
HEADS = {"classification": lambda config: Classification(config, 5),
         "multi_label": lambda config: MultiLabel(config, 1), "regression": Regression,
         "tagging": lambda config: Tagging(config, 7), "answer_span": AnswerSpan,
         "multiple_choice": MultipleChoice}


def values(path, task=None):
    """The arrays of a checkpoint by our names."""
    return {name: tensor.read() for name, tensor in checkpoints.read(path, task).tensors.items()}


def assert_same(found, wanted):
    """The same bits in the same types."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert np.ascontiguousarray(found[name]).tobytes() == np.ascontiguousarray(
            value).tobytes(), name


def encoder_only(wanted):
    return {name: value for name, value in wanted.items()
            if names.head(name) in ("embeddings", "encoder", "pooler")}


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    """A vocabulary of 97 tokens for the 101 rows of google_gelu."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    tokens = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "##c"]
    tokens += [f"w{i}" for i in range(97 - len(tokens))]
    path.write_text("".join(f"{token}\n" for token in tokens))
    return path


def test_our_names_are_those_of_the_model():
    config = checkpoints.read_config(GOLDEN / "hf_gelu")
    learner = Learner(BertEncoder(config), [
        MaskedLM(config, tied=False), SentencePrediction(config), ReplacedToken(config),
        AllTokensLM(config), SpanBoundary(config), Capitalization(config), TokenDocument(config),
        SentenceReordering(config), SentenceDistance(config), DiscourseRelation(config),
        IrRelevance(config),
        FeatureTagging(config, 3, "weighted_sum_all", lstm_size=2, lstm_layers=MAX_LSTMS),
        AttentiveClassification(config, 3, "weighted_sum_all", lstm_size=2, lstm_layers=MAX_LSTMS,
                                hidden_size=4, pairs=True),
        StepClassification(config, 3), StochasticAnswer(config, 3),
        CandidateLM(config, tied=False), SpanComparison(config, 2, reads_cls=True),
        *(make(config) for make in HEADS.values())])
    sizes = {letter: size or 0 for letter, size in letters(config).items()}
    ours = {name.replace("{i}", str(i)): tuple(sizes[letter] for letter in shape)
            for name, shape in names.shapes(config).items()
            # No form of the first head has all of its weights, and the others are of networks of
            # their own; LSTMs are options of others.
            if names.head(name) not in ("conditional_span", "permutation_lm", "recurrent_lm",
                                        "bidirectional_lm", "replaced_token_in_context")
            and "/bilstm/" not in name and "/extra/" not in name
            for i in numbers(config, name)}
    held = variables(learner)
    assert ours.keys() == held.keys()
    for name, shape in ours.items():
        assert all(a in (0, b) for a, b in zip(shape, held[name].shape, strict=True)), name


@pytest.fixture(scope="module")
def sources(vocab_file, tmp_path_factory):
    folders = {form: tmp_path_factory.mktemp(form) / "first" for form in FORMATS}
    for form, folder in folders.items():
        convert(GOLDEN / "google_gelu", folder, form, Changes(vocab_file=str(vocab_file)))
    return folders


@pytest.mark.parametrize("source, target", [*zip(FORMATS, FORMATS[1:] + FORMATS[:1])])
def test_every_format_is_read_and_written(source, target, sources, tmp_path, vocab_file):
    wanted = values(GOLDEN / "google_gelu")
    account = convert(sources[source], tmp_path / "second", target)
    assert account.source.startswith(str(sources[source]))
    wanted = encoder_only(wanted) if "keras_hub" in (source, target) else wanted
    assert_same(values(tmp_path / "second"), wanted)
    assert len(account.mapped) == len(wanted)
    weights = checkpoints.read(tmp_path / "second")
    assert "array" not in repr(weights)
    assert weights.config == checkpoints.read_config(GOLDEN / "google_gelu")
    assert pathlib.Path(weights.vocab_file).read_bytes() == vocab_file.read_bytes()


def test_training_checkpoints(tmp_path):
    trainer = tiny.trainer(layers=2)
    tiny.save_checkpoint(str(tmp_path), trainer, {}, keep=1)
    trainer.learner.encoder.config.to_json_file(tmp_path / "bert_config.json")
    account = convert(tmp_path, tmp_path / "out", "google")
    assert "optimizer and counters, which only a resumed run needs" in account.ignored.values()
    wanted = {name: variable.numpy() for name, variable in variables(trainer.learner).items()}
    assert_same(values(tmp_path / "out"), wanted)
    file = next(tmp_path.glob("checkpoint-*"))
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)
    with pytest.raises(InputError, match="checksum"):
        convert(tmp_path, tmp_path / "again", "google")


def test_encoders_and_compiled_models_of_keras(tmp_path):
    config = checkpoints.read_config(GOLDEN / "google_gelu")
    encoder = BertEncoder(config)
    learner = Learner(encoder, [Classification(config, 3)])
    learner.compile("adam", run_eagerly=True)
    learner.fit({"input_ids": np.ones((2, 4), "int32"), "label_ids": np.ones(2, "int32")},
                verbose=0)
    learner.save(tmp_path / "learner.keras")
    encoder.save(tmp_path / "encoder.keras")
    found = values(tmp_path / "learner.keras")
    assert_same(found, {name: v.numpy() for name, v in variables(learner).items()
                        if "seed_generator" not in name})
    assert_same(values(tmp_path / "encoder.keras"), encoder_only(found))


@pytest.fixture(scope="module")
def with_head(tmp_path_factory):
    """function(head): a folder with a model of that head, and another such model, to load into."""
    @functools.cache
    def make(head):
        folder = tmp_path_factory.mktemp(head)
        config = checkpoints.read_config(GOLDEN / "google_gelu")
        config.to_json_file(folder / "bert_config.json")
        learner, other = (Learner(BertEncoder(config), [HEADS[head](config)]) for _ in range(2))
        learner.save(folder / "model.keras")
        return folder, other
    return make


@pytest.mark.parametrize("target, head", [
    *((target, head) for target in ("google", "huggingface") for head in HEADS),
    *(("model_garden", head) for head in HEADS if head != "multiple_choice")])
def test_heads_of_tasks(head, target, with_head, tmp_path):
    folder, again = with_head(head)
    wanted = values(folder)
    account = convert(folder, tmp_path / "theirs", target)
    assert f"{head}/dense/kernel" in account.mapped and account.missing[0] == "masked_lm"
    assert_same(values(tmp_path / "theirs", head), wanted)
    for weight in again.weights:
        weight.assign(weight + 1)
    assert not checkpoints.load(tmp_path / "theirs", again).missing
    if target == "huggingface":     # where the files tell which head it is
        convert(tmp_path / "theirs", tmp_path / "back", "keras", Changes(task=head))
        assert_same(values(tmp_path / "back"), wanted)
        for hint in (None, "classification"):
            assert_same(values(tmp_path / "theirs", hint), wanted)


@pytest.fixture(scope="module")
def scaled(tmp_path_factory):
    """A regression of labels minus 120, divided by 5, in `model.keras`, and its folder."""
    folder = tmp_path_factory.mktemp("scaled")
    config = checkpoints.read_config(GOLDEN / "google_gelu")
    config.to_json_file(folder / "bert_config.json")
    learner = Learner(BertEncoder(config), [Regression(config, scale=5, mean=120.0)])
    learner.save(folder / "model.keras")
    return folder, learner.objectives[0]


@pytest.mark.parametrize("target", ["google", "huggingface", "model_garden", "keras"])
def test_the_scale_of_a_regression_stays(target, scaled, tmp_path):
    folder, head = scaled
    pooled = np.random.default_rng(0).normal(size=(3, head.config.hidden_size)).astype("float32")
    wanted = head.answers(head({"pooled_output": pooled}, {}))["values"].numpy()
    account = convert(folder, tmp_path / "theirs", target)
    assert ("regression/dense is multiplied by 5" in str(account)) == (target != "keras")
    assert ("120, the mean of its labels" in str(account)) == (target != "keras")
    found = checkpoints.read(tmp_path / "theirs", "regression")
    kernel, bias = (found.tensors[f"regression/dense/{name}"].read() for name in ("kernel", "bias"))
    beside = found.beside("regression")
    assert beside == ({"scale": 5, "mean": 120.0} if target == "keras" else {})
    found = (pooled @ kernel + bias) * beside.get("scale", 1) + beside.get("mean", 0)
    assert np.allclose(found, wanted, rtol=1e-5)
    model = bert_tf.open_model(tmp_path / "theirs")
    again = export_model.build(ExportFlags(init_checkpoint="x", output="y", task="regression",
                                           num_labels=1), model).objectives[0]
    assert ((again.scale, again.mean) == (5, 120.0)) == (target == "keras")


def test_the_scale_of_a_checkpoint_of_fine_tuning_is_in_its_task(scaled, tmp_path):
    folder, head = scaled
    own = {name: value + (name == "regression/dense/bias")
           for name, value in values(folder).items()}
    shutil.copy(folder / "bert_config.json", tmp_path)
    checksummed.write(str(tmp_path / "checkpoint-000000001.safetensors"),
                      {f"learner/bert/{name}": value for name, value in own.items()}, {})
    SavedTask(Task("x", "regression", {}, ()), 9, True, {
        "label_scale": 5.0, "label_mean": 2.0}).write(str(tmp_path))
    convert(tmp_path, tmp_path / "google", "google")
    found = values(tmp_path / "google", "regression")
    for name, mean in (("regression/dense/bias", 2), ("regression/dense/kernel", 0)):
        assert np.array_equal(found[name], own[name] * 5 + mean)


def test_both_orders_of_a_pair_have_a_place_in_keras_only(tmp_path):
    config = checkpoints.read_config(GOLDEN / "google_gelu")
    Learner(BertEncoder(config), [Classification(config, 2, orders=2)]).save(
        tmp_path / "model.keras")
    with pytest.raises(InputError, match="both orders, .*--leave_out=classification"):
        convert(tmp_path, tmp_path / "theirs", "huggingface")
    convert(tmp_path, tmp_path / "theirs", "huggingface", Changes(leave_out=("classification",)))
    convert(tmp_path, tmp_path / "own", "keras")
    assert checkpoints.read(tmp_path / "own").beside("classification") == {"orders": 2}


def test_a_head_of_features_is_read_and_left_out(tmp_path):
    config = checkpoints.read_config(GOLDEN / "google_gelu")

    def make(**options):
        return Learner(BertEncoder(config), [FeatureTagging(config, 3, **{
            "layers": "weighted_sum_all", "lstm_size": 2, "lstm_layers": 3, **options})])

    learner = make()
    learner.save(tmp_path / "model.keras")
    tiny.save_checkpoint(str(tmp_path), Trainer(learner, AdamWeightDecay(),
                                                tf.distribute.get_strategy()), {}, keep=1)
    config.to_json_file(tmp_path / "bert_config.json")
    wanted = {name: v.numpy() for name, v in variables(learner).items()}
    for path in (tmp_path / "model.keras", next(tmp_path.glob("checkpoint-*"))):
        assert_same(values(path), wanted)
        again = make()
        assert not checkpoints.load(path, again).missing
        assert_same({name: v.numpy() for name, v in variables(again).items()}, wanted)
        for form in ("huggingface", "keras"):
            account = convert(path, tmp_path / form / path.name, form)
            assert (f"of the head feature_tagging, which the format {form} does not have"
                    in account.ignored.values())
            assert_same(values(tmp_path / form / path.name), encoder_only(wanted))
    for other, message in (({"layers": "last"}, "with the same layers"),
                           ({"lstm_size": 3}, "use the configuration")):
        with pytest.raises(InputError, match=message):
            checkpoints.load(tmp_path / "model.keras", make(**other))


@pytest.mark.parametrize("name", ["google_gelu", "google_deep"])
def test_google_there_and_back(name, tmp_path):
    convert(GOLDEN / name, tmp_path / "hf", "huggingface")
    # CTranslate2 4.8 stops without it, and transformers 5 does not write it.
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["position_embedding_type"] == "absolute"
    convert(tmp_path / "hf", tmp_path / "back", "google")
    before, after = (tf.train.load_checkpoint(str(folder / "bert_model.ckpt"))
                     for folder in (GOLDEN / name, tmp_path / "back"))
    weights = [n for n in before.get_variable_to_shape_map() if not n.endswith(("step", "adam_m"))]
    assert sorted(weights) == sorted(after.get_variable_to_shape_map())
    for weight in weights:
        assert_same({"": after.get_tensor(weight)}, {"": before.get_tensor(weight)})


@pytest.mark.parametrize("name", ["hf_gelu_new", "hf_relu", "hf_narrow_heads"])
def test_hugging_face_there_and_back(name, tmp_path):
    form = "google" if name != "hf_narrow_heads" else "keras"    # it has the exact GELU
    convert(GOLDEN / name, tmp_path / "other", form)
    convert(tmp_path / "other", tmp_path / "back", "huggingface")
    assert_same(load_file(tmp_path / "back" / "model.safetensors"),
                load_file(GOLDEN / name / "model.safetensors"))


@pytest.fixture
def hf(tmp_path):
    """A copy of a Hugging Face folder, and a function that changes its tensors."""
    folder = pathlib.Path(shutil.copytree(GOLDEN / "hf_gelu_new", tmp_path / "hf"))

    def change(edit, **config):
        tensors = load_file(folder / "model.safetensors")
        save_file(edit(tensors) or tensors, folder / "model.safetensors")
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))

    return folder, change


@pytest.mark.parametrize("dtype", ["float16", "float64", ml_dtypes.bfloat16])
@pytest.mark.parametrize("target", FORMATS)
def test_other_types_of_numbers(hf, dtype, target, tmp_path):
    folder, change = hf
    change(lambda tensors: {name: x.astype(dtype) for name, x in tensors.items()})
    wanted = values(folder)
    convert(folder, tmp_path / "out", target)
    convert(tmp_path / "out", tmp_path / "back", "huggingface",
            Changes(dtype=str(np.dtype(dtype)) if "keras" in target else None))
    assert_same(values(tmp_path / "back"),
                encoder_only(wanted) if target == "keras_hub" else wanted)


@pytest.mark.parametrize("others, widest", [
    (["float32"], "float32"), (["float16"], "float16"), (["float16", "float32"], "float32"),
    (["float16", "bfloat16"], "float32"), (["bfloat16", "float64"], "float64")])
def test_a_configuration_names_the_widest_type(others, widest, hf, tmp_path):
    """transformers 5 reads all weights in the type that is named, else in the type of the first."""
    folder, change = hf
    change(lambda tensors: {name: x.astype(others[index % len(others)])
                            for index, (name, x) in enumerate(sorted(tensors.items()))})
    convert(folder, tmp_path / "back", "huggingface")
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert config["torch_dtype"] == widest
    assert {str(value.dtype) for value in values(tmp_path / "back").values()} == {*others}


@pytest.mark.parametrize("values", [
    np.arange(6.).reshape(2, 3).T, np.asfortranarray(np.arange(6.).reshape(2, 3)),
    np.arange(12.)[::2], np.arange(6.)[::-1], np.array(3), np.zeros((0, 2)),
    np.arange(4.).astype(">f4")], ids=str)
def test_arrays_that_do_not_lie_in_order_keep_their_numbers(values, tmp_path):
    checksummed.save(str(tmp_path / "a"), {"a": values}, {"format": "pt"})
    checksummed.write(str(tmp_path / "b"), {"a": values}, {})
    for found in (load_file(tmp_path / "a")["a"], checksummed.read(str(tmp_path / "b"))[0]["a"]):
        assert found.shape == values.shape and np.array_equal(found, values)


def test_bfloat16_is_known_to_a_fresh_process(hf, tmp_path):
    folder, _ = hf
    code = """if True:
        import sys
        from bert_tf.checkpoints.conversion import Changes, convert
        first, second, third = sys.argv[1:]
        convert(first, second, "huggingface", Changes(dtype="bfloat16"))
        convert(second, third, "huggingface")
        assert "tensorflow.python" not in sys.modules
        """
    made = [str(tmp_path / name) for name in ("first", "second")]
    subprocess.run([sys.executable, "-c", code, folder, *made], check=True, cwd=GOLDEN.parents[1])
    first, second = map(values, made)
    assert {str(value.dtype) for value in first.values()} == {"bfloat16"}
    assert_same(first, second)


def test_float64_that_float32_cannot_hold(hf, tmp_path):
    folder, change = hf
    change(lambda tensors: {name: x.astype("float64") * 1.1 for name, x in tensors.items()})
    with pytest.raises(InputError, match="float64.*--dtype=float32"):
        convert(folder, tmp_path / "out", "keras")
    assert not (tmp_path / "out").exists() and len(list(tmp_path.iterdir())) == 1
    account = convert(folder, tmp_path / "out", "keras", Changes(dtype="float32"))
    assert "converted to float32" in str(account)


def shards(folder):
    """Cuts model.safetensors into two files with an index, as transformers does."""
    tensors = load_file(folder / "model.safetensors")
    places = {name: f"model-0000{1 + i % 2}-of-00002.safetensors"
              for i, name in enumerate(sorted(tensors))}
    for place in set(places.values()):
        save_file({name: x for name, x in tensors.items() if places[name] == place}, folder / place)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return places


def test_shards(hf, tmp_path):
    folder, _ = hf
    wanted = values(folder)
    places = shards(folder)
    assert_same(values(folder), wanted)
    index = folder / "model.safetensors.index.json"
    for name, place in (("surprise", places[WORDS]), (WORDS, "../model.safetensors"),
                        (WORDS, "absent.safetensors"), (WORDS, 7)):
        index.write_text(json.dumps({"weight_map": {**places, name: place}}))
        with pytest.raises(InputError, match="shard|folder|read|hold"):
            checkpoints.read(folder)


def test_an_output_matrix_of_its_own(hf, tmp_path):
    folder, change = hf
    change(lambda tensors: tensors.update({DECODER: tensors[WORDS] + 1}), tie_word_embeddings=False)
    wanted = values(folder)
    with pytest.raises(InputError, match="--leave_out=masked_lm"):
        convert(folder, tmp_path / "out", "google")
    convert(folder, tmp_path / "out", "google", Changes(leave_out=("masked_lm",)))
    convert(folder, tmp_path / "keras", "keras")
    convert(tmp_path / "keras", tmp_path / "back", "huggingface")
    assert_same(values(tmp_path / "keras"), wanted)
    there, back = (load_file(path / "model.safetensors") for path in (folder, tmp_path / "back"))
    assert_same(back, {**there, "cls.predictions.decoder.bias": there["cls.predictions.bias"]})
    assert_same(values(tmp_path / "back"), wanted)
    config = checkpoints.read_config(folder)
    with pytest.raises(InputError, match="tied=False"):
        checkpoints.load(folder, Learner(BertEncoder(config), [MaskedLM(config)]))
    learner = Learner(BertEncoder(config), [MaskedLM(config, tied=False)])
    assert not checkpoints.load(folder, learner).missing


def test_names_of_classes(tmp_path):
    config = checkpoints.read_config(GOLDEN / "google_gelu")
    Learner(BertEncoder(config), [Tagging(config, 3)]).save(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "hf", "huggingface")
    path = tmp_path / "hf" / "config.json"
    found = json.loads(path.read_text())
    assert found["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    path.write_text(json.dumps({**found, "id2label": {"0": "O", "1": "B", "2": "I"}}))
    convert(tmp_path / "hf", tmp_path / "back", "huggingface")
    found = json.loads((tmp_path / "back" / "config.json").read_text())
    assert found["label2id"] == {"O": 0, "B": 1, "I": 2}
    path.write_text(json.dumps({**found, "id2label": {"0": "O", "1": "B", "2": "B"}}))
    assert checkpoints.read(tmp_path / "hf").labels == ("O", "LABEL_1", "LABEL_2")
    path.write_text(json.dumps({**found, "id2label": {"0": "LABEL_1", "1": "B", "2": "B"}}))
    assert checkpoints.read(tmp_path / "hf").labels == ("LABEL_0", "LABEL_1", "LABEL_2")


@pytest.mark.parametrize("wrong", [
    ["O", "B", "I"], "O", {"O": "0"}, {"0": "O", "1": "B", "3": "I"}, {"1": "O", "2": "B"},
    {"0.0": "O"}, {"0": None}, {"0": ["O"]}, 3])
def test_names_of_classes_that_no_number_has_are_told(hf, wrong, capsys):
    folder, change = hf
    change(lambda tensors: None, id2label={"1": "B", "0": 7})
    assert checkpoints.read(folder).labels == ("7", "B")
    change(lambda tensors: None, id2label=wrong)
    assert checkpoints.read(folder).labels == ()
    assert capsys.readouterr().err.startswith(
        f"warning: {folder / 'config.json'}: id2label is {wrong}, which does not name the label of "
        "each number from 0")


def test_positions_and_padding_are_cut_when_asked(hf, tmp_path):
    folder, change = hf
    wanted = values(folder)
    assert wanted["embeddings/position_embeddings"].shape[0] == 24
    change(lambda tensors: None, max_position_embeddings=20, vocab_size=60)
    with pytest.raises(InputError, match="position_embeddings.*24|word_embeddings.*67"):
        convert(folder, tmp_path / "out", "google")
    changes = Changes(max_position_embeddings=16, vocab_size=64)
    account = convert(folder, tmp_path / "out", "google", changes)
    assert "the first 16 of 24 rows" in str(account)
    found = values(tmp_path / "out")
    for name, rows in (("embeddings/position_embeddings", 16), ("embeddings/word_embeddings", 64),
                       ("masked_lm/output_bias", 64)):
        assert np.array_equal(found[name], wanted[name][:rows])
    for count in (0, 99):
        with pytest.raises(InputError, match=f"max_position_embeddings={count}.* give 1 to 24"):
            convert(folder, tmp_path / "more", "google",
                    dataclasses.replace(changes, max_position_embeddings=count))


def test_how_texts_become_vectors_stays(hf, tmp_path, capsys):
    """In the files of sentence-transformers, also beside a model in ONNX; a model with further
    layers would give other vectors, so these files say nothing of it."""
    folder, _ = hf

    def describe(*kinds, **sizes):
        contents = {
            "modules.json": [{"type": f"sentence_transformers.models.{kind}",
                              "path": f"{number}.0_{kind}" if number else ""}
                             for number, kind in enumerate(kinds)],
            "1.0_Pooling/config.json": {"pooling_mode_cls_token": True},
            "config_sentence_transformers.json": {"prompts": {"query": "query: "}},
            "sentence_bert_config.json": sizes}
        (folder / "1.0_Pooling").mkdir(exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_text(json.dumps(content))
        return contents

    contents = describe("Transformer", "Pooling", "Normalize", max_seq_length=20)
    convert(folder, tmp_path / "out", "huggingface")
    convert(folder, tmp_path / "cut", "huggingface", Changes(max_position_embeddings=16))
    (tmp_path / "onnx").mkdir()
    write_around(tmp_path / "onnx", folder, Changes())
    for name, content in contents.items():
        for made in ("out", "onnx", "cut"):
            wanted = {"max_seq_length": 16} if content == {"max_seq_length": 20} and (
                made == "cut") else content
            assert json.loads((tmp_path / made / name).read_text()) == wanted
    assert (tmp_path / "onnx" / "config.json").exists()
    describe("Transformer", "Pooling", "Dropout", transformer_task="feature-extraction")
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 12}')
    size = json.loads((folder / "config.json").read_text())["vocab_size"]
    (folder / "vocab.txt").write_text("\n".join([
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(size - 5))]))
    convert(folder, tmp_path / "short", "huggingface")
    assert json.loads((tmp_path / "short" / "tokenizer_config.json").read_text())[
        "model_max_length"] == 12
    assert (tmp_path / "short" / "1.0_Pooling").exists()
    describe("Transformer", "Pooling", "Dense")
    convert(folder, tmp_path / "dense", "huggingface")
    assert "also need 2.0_Dense, which is not taken over" in capsys.readouterr().err
    assert not (tmp_path / "dense" / "modules.json").exists()
    for wrong in ([{"type": "Pooling", "path": "../outside"}], [3], {"type": "Pooling"}):
        (folder / "modules.json").write_text(json.dumps(wrong))
        with pytest.raises(InputError, match="modules.json must be a list of modules"):
            convert(folder, tmp_path / "wrong", "huggingface")
    assert not (tmp_path / "wrong").exists()


def test_every_head_with_a_row_for_each_token_is_cut(tmp_path):
    config = checkpoints.read_config(GOLDEN / "google_gelu")
    Learner(BertEncoder(config), [MaskedLM(config), SpanBoundary(config)]).save(
        tmp_path / "model.keras")
    wanted = values(tmp_path / "model.keras")
    convert(tmp_path / "model.keras", tmp_path / "out", "keras", Changes(vocab_size=64))
    found = values(tmp_path / "out")
    assert wanted["span_boundary/output_bias"].shape == (config.vocab_size,)
    assert np.array_equal(found["span_boundary/output_bias"],
                          wanted["span_boundary/output_bias"][:64])


def test_new_words_get_the_mean_of_their_pieces(vocab_file, tmp_path):
    convert(GOLDEN / "google_gelu", tmp_path / "old", "google", Changes(vocab_file=str(vocab_file)))
    tokens = vocab_file.read_text().split("\n")[:-1]
    tokens[1] = "ab"                                            # in an unused slot
    tokens += ["abc", "##bc", "zz", "w1b", "w2b", "w3b"]        # past the padding, too
    new = tmp_path / "new.txt"
    new.write_text("".join(f"{token}\n" for token in tokens))
    account = convert(tmp_path / "old", tmp_path / "out", "huggingface",
                      Changes(vocab_file=str(new)))
    assert "7 new rows, each the mean" in str(account) and "    98 ##bc: ##b ##c" in str(account)
    before, after = values(tmp_path / "old"), values(tmp_path / "out")
    pieces = {1: [6, 7], 97: [6, 7, 8], 98: [7, 8], 99: [2], 100: [10, 7], 102: [12, 7]}
    for name in ("embeddings/word_embeddings", "masked_lm/output_bias"):
        assert len(after[name]) == 103
        for index, ids in pieces.items():
            np.testing.assert_allclose(after[name][index], before[name][ids].mean(0), rtol=1e-6)
        same = [i for i in range(97) if i not in pieces]
        assert np.array_equal(after[name][same], before[name][same])
    assert checkpoints.read_config(tmp_path / "out").vocab_size == 103
    tokens[50] = "other"
    new.write_text("".join(f"{token}\n" for token in tokens))
    with pytest.raises(InputError, match="line 51.*other"):
        convert(tmp_path / "old", tmp_path / "out2", "google", Changes(vocab_file=str(new)))


@pytest.mark.parametrize("form, settings", [
    ("keras_hub", {"strip_accents": False}), ("keras_hub", {"strip_accents": True}),
    ("huggingface", {"strip_accents": True}),
    ("huggingface", {"strip_accents": False, "tokenize_chinese_chars": False}),
    ("huggingface", {"strip_accents": True, "added_tokens_decoder": {
        "97": {"content": "<e1>", "special": True}}})])
def test_the_settings_of_a_tokenizer_stay(form, settings, vocab_file, tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text(vocab_file.read_text())
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    convert(GOLDEN / "google_gelu", tmp_path / "theirs", form, Changes(
        vocab_file=str(vocabulary), do_lower_case=not settings["strip_accents"]))
    assert checkpoints.read(tmp_path / "theirs").tokenizer.settings == settings


def test_padding_of_the_vocabulary_is_kept_and_told(vocab_file, tmp_path):
    account = convert(GOLDEN / "google_gelu", tmp_path / "out", "huggingface",
                      Changes(vocab_file=str(vocab_file), do_lower_case=False))
    assert "4 rows pad the vocabulary of 97 tokens to 101." in str(account)
    assert checkpoints.read(tmp_path / "out").do_lower_case is False


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path, value):
    shutil.copytree(GOLDEN / "hf_gelu", tmp_path / "in")
    tensors = load_file(tmp_path / "in" / "model.safetensors")
    name = next(name for name in tensors if name.endswith("layer.0.output.dense.weight"))
    tensors[name].flat[3] = value
    save_file(tensors, tmp_path / "in" / "model.safetensors")
    for dry_run in (True, False):
        with pytest.raises(InputError, match=f"{name} of .*in.* holds NaN or infinity"):
            convert(tmp_path / "in", tmp_path / "out", "google", Changes(hidden_act="gelu"),
                    dry_run=dry_run)
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_nothing_is_written_where_something_is_or_in_a_dry_run(tmp_path):
    convert(GOLDEN / "google_gelu", tmp_path / "out", "huggingface", dry_run=True)
    assert not list(tmp_path.iterdir())
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("")
    with pytest.raises(InputError, match="is not an empty folder"):
        convert(GOLDEN / "google_gelu", tmp_path / "out", "huggingface")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine"]
    (tmp_path / "out" / "mine").unlink()
    # What a killed process leaves.
    (tmp_path / f"out.tmp-bert_tf-99999999-{writing._machine()}-1").mkdir()
    convert(GOLDEN / "google_gelu", tmp_path / "out", "huggingface")
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "config.json", "model.safetensors", "out"]


@pytest.mark.parametrize("target", FORMATS)
def test_a_full_disk_is_an_error_that_names_what_is_written(target, tmp_path):
    with full_disk(), pytest.raises(OSError, match=f"large: '{tmp_path}/out") as error:
        convert(GOLDEN / "google_gelu", tmp_path / "out", target)
    assert error.value.errno == errno.EFBIG and not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind, flag, value", [
    ("t5", "max_position_embeddings", 8), ("xlnet", "max_position_embeddings", 0),
    ("t5", "hidden_act", "relu")])
def test_settings_that_a_network_lacks_cannot_change(kind, flag, value, tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
             "intermediate_size": 8, "vocab_size": 128}
    config = {"t5": T5Config, "xlnet": XLNetConfig}[kind].preset("tiny", sizes)
    training.save_model(str(tmp_path), training.Learner(networks.build(config), []))
    with pytest.raises(InputError, match=f"--{flag}: .* has the type {kind}, which has no such"):
        convert(tmp_path, "", "keras", Changes(**{flag: value}), dry_run=True)


@pytest.mark.parametrize("target", ["google", "model_garden", "keras_hub"])
def test_what_their_code_would_compute_otherwise(target, tmp_path):
    with pytest.raises(InputError, match="--hidden_act=gelu"):
        convert(GOLDEN / "hf_gelu", tmp_path / "out", target)
    convert(GOLDEN / "hf_gelu", tmp_path / "out", target, Changes(hidden_act="gelu"))
    assert checkpoints.read_config(tmp_path / "out").hidden_act == "gelu"


@pytest.mark.parametrize("form", FORMATS)
def test_files_can_be_read_by_whom_the_umask_lets(form, sources, vocab_file):
    modes = {path.stat().st_mode & 0o777 for path in sources[form].rglob("*.*") if path.is_file()}
    assert modes == {vocab_file.stat().st_mode & 0o777}


def test_heads_can_be_left_out(tmp_path):
    account = convert(GOLDEN / "google_gelu", tmp_path / "out", "huggingface",
                      Changes(leave_out=("masked_lm", "next_sentence")))
    assert list(account.ignored.values()).count("left out as asked for") == 7
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["architectures"] == ["BertModel"]
    for flag, value in (("leave_out", ("tagging",)), ("task", "tagging")):
        with pytest.raises(InputError, match=f"^--{flag}: .* has no head tagging; its heads are p"):
            convert(GOLDEN / "google_gelu", tmp_path / "x", "google", Changes(**{flag: value}))


@pytest.mark.parametrize("form", ["training", "pickle"])
def test_what_is_not_written_is_named(form, tmp_path):
    with pytest.raises(InputError, match=f"no format {form!r} to write; choose from google, hugg"):
        convert(GOLDEN / "google_gelu", tmp_path / "out", form)

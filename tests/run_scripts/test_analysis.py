"""The commands of run_scripts/analysis on a tiny network: what they write."""

import dataclasses
import functools
import json
import pathlib
import shutil

import keras
import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import matthews_corrcoef

import bert_tf
from bert_tf import analysis, networks, tokenization
from bert_tf.config import EncoderConfig, T5Config, UniversalConfig, XLNetConfig
from bert_tf.data.text.vectors import Texts
from bert_tf.errors import InputError
from bert_tf.tasks.named import find_task
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import OWN
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.training.settings import TrainSettings
from bert_tf.training.train import save_model
from run_scripts.analysis import (
    attention,
    dependencies,
    fixed_patterns,
    heads,
    identifiability,
    layers,
    senses,
)
from run_scripts.analysis.attention import read_features
from run_scripts.analysis.model import ModelFlags, open_encoder
from tests.goldens import at_hand
from tests.training import tiny

pytestmark = pytest.mark.usefixtures("all_eagerly")
GOLDEN = pathlib.Path(__file__).parent.parent / "golden"
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *"abcdefghij",
          *(f"##{letter}" for letter in "abcdefghij")]


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory):
    """A folder with a network of 2 layers, its vocabulary, a text and tagged words."""
    folder = tmp_path_factory.mktemp("analysis")
    shutil.copytree(GOLDEN / "google_gelu", folder, dirs_exist_ok=True)
    tokens = TOKENS + [f"[unused{i}]" for i in range(101 - len(TOKENS))]
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    rng = np.random.default_rng(0)

    def sentence():
        return ["".join(rng.choice(list("abcdefghij"), rng.integers(1, 3))) for _ in range(8)]

    (folder / "text.txt").write_text("\n".join(
        "\n".join(" ".join([*sentence(), "."]) for _ in range(12)) + "\n" for _ in range(4)))
    (folder / "words.txt").write_text("\n".join("".join(
        f"{word} {'VB' if len(word) > 1 else 'NN'} {'I-NP' if i % 4 else 'O'}\n"
        for i, word in enumerate(sentence())) for _ in range(12)))
    return folder


@pytest.fixture(name="drawn")
def fixture_drawn(monkeypatch):
    """The pictures are drawn; what takes long is to make them pixels, which other tests do."""
    monkeypatch.setattr("matplotlib.figure.Figure.savefig",
                        lambda figure, path, **options: pathlib.Path(path).write_bytes(b"-"))


def flags_of(model, folder):
    return ModelFlags(init_checkpoint=str(model), output_dir=str(folder), max_seq_length=24)


def test_the_flags_of_a_training_stay(model, tmp_path, as_program):
    (tmp_path / "flags.txt").write_text("# bert-finetune --flagfile=THIS_FILE\n--do_train\n")
    open_encoder(as_program(flags_of(model, tmp_path)))
    assert (tmp_path / "flags.txt").read_text().endswith("\n--do_train\n")


def test_attention(model, tmp_path, capsys):
    job = attention.AttentionFlags(input_file=str(model / "text.txt"), num_docs=4,
                                           num_maps=2, fine_tuned_checkpoint=str(model))
    attention.main(flags_of(model, tmp_path), job)
    assert {path.name for path in tmp_path.iterdir()} == {
        "attention.html", "heads.png", "maps.npz", "plane.png", "statistics.json",
        "statistics.png"}
    found = json.loads((tmp_path / "statistics.json").read_text())
    assert found["texts"] == 4 and np.allclose(found["cosine"], 1)
    assert sum(found["classes"]) == pytest.approx(1)
    assert found["classes"] == found["fine_tuned_classes"]
    maps = np.load(tmp_path / "maps.npz")
    probabilities = maps["text1/attention"]
    assert probabilities.shape[-1] == len(maps["text1/input_ids"])
    np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-5, atol=1e-5)
    assert "mean over the heads of a layer" in capsys.readouterr().out


def test_lines_that_are_cut_are_counted(model, tmp_path, capsys):
    text = tmp_path / "lines.txt"
    text.write_text("a b c\na b c d e ||| f g\na b c d e f ||| g h i j\n")
    tokenizer = tokenization.open_tokenizer(str(model))
    job = attention.AttentionFlags(input_file=str(text), texts="lines")
    for longest, told in ((13, ""), (12, "1 line cut to 12 tokens\n"),
                          (9, "2 lines cut to 9 tokens\n")):
        rows = read_features(job, tokenizer, longest)
        assert max(row["input_ids"].shape[1] for row in rows) == longest
        assert capsys.readouterr().out == told


def test_a_fine_tuned_model_of_another_size_is_named_by_its_flag(model, tmp_path):
    save_model(tmp_path, bert_tf.Learner(networks.build(tiny.config()), []))
    job = attention.AttentionFlags(input_file=str(model / "text.txt"), num_docs=1,
                                   fine_tuned_checkpoint=str(tmp_path))
    with pytest.raises(InputError, match="--fine_tuned_checkpoint: .*the model has"):
        attention.main(flags_of(model, tmp_path / "out"), job)


def test_a_left_to_right_network_attends_to_the_left(model, tmp_path):
    """A head without queries looks at all that it sees alike, and no mean counts what it doesn't
    see."""
    sizes = json.loads((model / "bert_config.json").read_text())
    config = EncoderConfig.from_dict({**sizes, "directionality": "left_to_right"})
    network = networks.build(config)
    for layer in network.layers_:
        layer.attention.query.kernel.assign(0 * layer.attention.query.kernel)
    survey = attention.Survey(tokenization.open_tokenizer(str(model)).vocabulary, 1, 1,
                              is_causal=network.config.is_causal)
    batch = {"input_ids": np.array([[2, 7, 8, 3]]), "input_mask": np.ones((1, 4), int),
             "segment_ids": np.zeros((1, 4), int)}
    survey.add(next(iter(analysis.read(network, [batch], ("attention",)))))
    assert survey.statistics.uniform_entropy == pytest.approx(np.log([1, 2, 3, 4]).mean())
    entropy = survey.statistics.result()["entropy"]
    assert np.allclose(entropy, survey.statistics.uniform_entropy, atol=5e-3)
    learner = bert_tf.Learner(network, [bert_tf.MaskedLM(config)])
    vocabulary = tokenization.open_tokenizer(str(model)).vocabulary
    found = attention.measure_gradients(learner, [batch], vocabulary, 0)
    masked = analysis.mask_tokens(batch, vocabulary, 0.15, np.random.default_rng(0))
    weights, gradients = analysis.attention_gradients(network, learner.objectives[0], masked)
    seen = np.tri(4) > 0
    assert not gradients[..., ~seen].any() and not weights[..., ~seen].any()
    means = [np.abs(gradients[0, 0, :, j:, j]).mean() for j in range(4)]
    assert found["gradient_to_sep"][0] == pytest.approx(means[3])
    assert found["gradient_to_others"][0] == pytest.approx(np.mean(means[:3]))


def test_pairs_of_any_layout_fit(tmp_path, test_data):
    """RoBERTa's pairs have four special tokens; three leave room for a position too many."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(["the house is small and old", "it has a door", ""] * 6))
    tokenizer = tokenization.open_tokenizer(str(test_data / "vocabs/roberta-base"))
    job = attention.AttentionFlags(input_file=str(text), num_docs=6)
    rows = read_features(job, tokenizer, 12)
    assert {row["input_ids"].shape[1] for row in rows} == {12}
    text.write_text("the house is small\n\n")
    with pytest.raises(InputError, match="have fewer than 8 tokens each"):
        read_features(job, tokenizer, 12)


@pytest.mark.parametrize("seed", [-1, 1 << 40])
def test_a_seed_that_no_generator_takes_is_refused(seed, model):
    with pytest.raises(InputError, match=f"--random_seed is {seed}; it must be from 0 to"):
        attention.AttentionFlags(input_file=str(model / "text.txt"), random_seed=seed)


def test_identifiability(model, tmp_path):
    job = identifiability.IdentifiabilityFlags(
        input_file=str(model / "text.txt"), lengths=["24", "99"], texts_per_length=2,
        identification_texts=6, mlp_epochs=1, attribution_texts=1, projections=2)
    identifiability.main(flags_of(model, tmp_path), job)
    found = json.loads((tmp_path / "identifiability.json").read_text())
    assert set(found["by_length"]) == {"24"}
    assert found["identified"]["cosine"][0] == 1
    assert np.diag(found["identified_across"]).tolist() == found["identified"]["linear"]
    assert len(found["identified"]["mlp"]) == 3
    assert (tmp_path / "identifiability.png").stat().st_size > 10_000


def test_layers(model, tmp_path):
    job = layers.LayersFlags(
        input_file=str(model / "words.txt"), eval_input_file=str(model / "words.txt"),
        tags=["pos=1", "chunk=2"])
    layers.main(flags_of(model, tmp_path), job)
    found = json.loads((tmp_path / "layers.json").read_text())
    assert found["probes"]["pos"]["metric"] == "tag_accuracy"
    assert found["probes"]["chunk"]["metric"] == "entity_f1"
    assert found["chunks"]["NP"]["words"] > 12
    assert np.allclose(np.diag(found["cka"]), 1)
    with pytest.raises(InputError, match="--tags"):
        layers.LayersFlags("a", "b", tags=["pos"]).columns()


def test_sentences_that_are_left_out_are_counted(model, tmp_path, capsys, drawn):
    """Of the others each word occurs once, and then in one sentence of one word."""
    long = "\n".join(["a NN"] * 30)
    (tmp_path / "words.txt").write_text(f"a NN\nb VB\n\n{long}\n\nc NN\nd VB\n\n{long}\n")
    job = layers.LayersFlags(
        input_file=str(model / "words.txt"), eval_input_file=str(tmp_path / "words.txt"),
        tags=["pos=1"], chunk_tag="")
    layers.main(flags_of(model, tmp_path / "out"), job)
    shown = capsys.readouterr().out
    assert f"left out: 2 of 4 sentences of {tmp_path / 'words.txt'}, with" in shown
    assert shown.count("left out: ") == 1       # none of --input_file's
    assert "no word of --eval_input_file occurs twice" in shown and "nan" not in shown
    found = json.loads((tmp_path / "out" / "layers.json").read_text())
    assert "self_similarity" not in found and np.isfinite(found["anisotropy"]).all()
    (tmp_path / "words.txt").write_text("a NN\n")
    with pytest.raises(InputError, match="holds one word only"):
        layers.main(flags_of(model, tmp_path / "out"), job)


@pytest.mark.parametrize("network", at_hand("golden/{}", ("xlnet", "t5")))
def test_networks_with_relative_positions(network, model, tmp_path, capsys, drawn, test_data):
    """Other special tokens: none before a text, and two or one after it."""
    config, vocabulary = {
        "xlnet": (XLNetConfig(5000, d_model=16, n_layer=2, n_head=2, d_head=8, d_inner=16,
                              initializer_range=0.2), "golden/xlnet/spiece.model"),
        "t5": (T5Config(32128, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2),
               "vocabs/t5/spiece.model")}[network]
    source = tmp_path / "model"
    source.mkdir()
    save_model(source, bert_tf.Learner(networks.build(config), []))
    flags = ModelFlags(init_checkpoint=str(source), output_dir=str(tmp_path / "out"),
                       max_seq_length=48, vocab_file=str(test_data / vocabulary))
    text = str(model / "text.txt")
    attention.main(flags, attention.AttentionFlags(input_file=text, num_docs=3))
    found = json.loads((tmp_path / "out/statistics.json").read_text())
    assert np.shape(found["sep"]) == (2, 2) and ("cls" in found) == (network == "xlnet")
    assert np.isfinite(found["entropy"]).all()
    with pytest.raises(InputError, match=f"not for a model of the type {network}"):
        attention.main(flags, attention.AttentionFlags(input_file=text, gradients=True))
    if network == "t5":
        words = str(model / "words.txt")
        layers.main(flags, layers.LayersFlags(input_file=words, eval_input_file=words,
                                              tags=["chunk=2"]))
        found = json.loads((tmp_path / "out/layers.json").read_text())
        assert len(found["self_similarity"]) == 3 and found["chunks"]["NP"]["words"] > 12
        # The first layer's input is that of the word alone.
        assert found["self_similarity"][0] + found["anisotropy"][0] == pytest.approx(1)
    else:
        identifiability.main(flags, identifiability.IdentifiabilityFlags(
            input_file=text, lengths=["9"], texts_per_length=1, identification_texts=3,
            mlp_epochs=0, attribution_texts=1, projections=1))
        found = json.loads((tmp_path / "out/identifiability.json").read_text())
        assert found["identified"]["cosine"][0] == 1
    assert ("<cls>" in capsys.readouterr().out) == (network == "xlnet")


@pytest.mark.parametrize("maps", ["decoder", "cross"])
def test_maps_of_a_decoder(maps, model, tmp_path, test_data, capsys, drawn):
    config = T5Config(32128, d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2)
    source, text = tmp_path / "model", tmp_path / "pairs.txt"
    source.mkdir()
    save_model(source, bert_tf.Learner(networks.build(config), []))
    text.write_text("The house is small. ||| Das Haus ist klein.\n\nA dog. ||| Ein Hund, so.\n")
    flags = ModelFlags(init_checkpoint=str(source), output_dir=str(tmp_path / "out"),
                       max_seq_length=48, vocab_file=str(test_data / "vocabs/t5/spiece.model"))
    job = attention.AttentionFlags(input_file=str(text), texts="lines", maps=maps)
    attention.main(flags, job)
    found = json.loads((tmp_path / "out/statistics.json").read_text())
    assert found["texts"] == 2 and "classes" not in found and ("self" in found) == (
        maps == "decoder")
    kept = np.load(tmp_path / "out/maps.npz")
    # One row for each token of "Ein Hund, so." and the 0 before it; the columns end with </s>.
    rows = len(kept["text1/from_ids" if maps == "cross" else "text1/input_ids"])
    assert kept["text1/attention"].shape[:3] == (2, 2, rows)
    entropy = np.log(np.arange(1, rows + 1)).mean() if maps == "decoder" else np.log(
        kept["text1/attention"].shape[-1])
    first = len(kept["text0/input_ids"])
    other = np.log(np.arange(1, first + 1)).mean() if maps == "decoder" else np.log(first)
    assert found["uniform_entropy"] == pytest.approx((entropy + other) / 2)
    if maps == "cross":
        assert kept["text1/input_ids"][-1] == 1 and kept["text1/from_ids"][0] == 0
        rows = attention.read_pairs(job, open_encoder(flags).tokenizer, 5)
        assert max(ids.shape[1] for row in rows for ids in row.values()) == 5
        assert "\n2 lines cut to 5 tokens\n" in capsys.readouterr().out
    for wrong, message in (({"texts": "documents"}, "--maps=.* needs lines of two texts"),
                           ({"gradients": True}, "it is for --maps=encoder")):
        with pytest.raises(InputError, match=message):
            dataclasses.replace(job, **wrong)
    text.write_text("\n\n\nOnly one text.\n")
    with pytest.raises(InputError, match="line 4 of .* must be two texts"):
        attention.main(flags, dataclasses.replace(job, num_docs=1))
    text.write_text("")
    for given in (job, dataclasses.replace(job, maps="encoder")):
        with pytest.raises(InputError, match="gives no text: it must have one line"):
            attention.main(flags, given)
    with pytest.raises(InputError, match="has no decoder"):
        attention.main(flags_of(model, tmp_path / "bert"), job)


def test_senses(model, tmp_path, capsys, drawn):
    """A word's own vector is nearest to it."""
    rng = np.random.default_rng(1)
    text = "".join(f"{word}\t{word[0]}\t{number}\n" + "\n" * (number % 5 == 4)
                   for number, word in enumerate(rng.choice(list("abc"), 25)))
    (tmp_path / "words.txt").write_text(text)
    job = senses.SensesFlags(input_file=[str(tmp_path / "words.txt")], neighbours=["1", "30"],
                             eval_input_file=str(tmp_path / "words.txt"))
    senses.main(flags_of(model, tmp_path / "out"), job)
    found = json.loads((tmp_path / "out/senses.json").read_text())["known lemma"]
    # Each sense occurs once, so the nearest decides among all.
    assert found["instances"] == 25 and found["1 nearest"] == found["30 nearest"] == 1
    assert found["most frequent sense"] == 3 / 25
    assert "25 senses of 3 lemmas" in capsys.readouterr().out
    (tmp_path / "long.txt").write_text(text + "b\t_\t_\n" * 22 + "a\ta\t0\n")
    senses.main(flags_of(model, tmp_path / "out"), dataclasses.replace(
        job, eval_input_file=str(tmp_path / "long.txt")))
    assert "1 of 26 words of --eval_input_file are left out" in capsys.readouterr().out
    with pytest.raises(InputError, match="--layer is 9"):
        senses.main(flags_of(model, tmp_path / "out"), dataclasses.replace(job, layer=9))


def test_senses_of_each_block_of_a_layer(model, tmp_path):
    config = bert_tf.EncoderConfig(101, 8, 1, 2, 8, max_position_embeddings=32, type_vocab_size=2,
                                   inner_group_num=2)
    (folder := tmp_path / "blocks").mkdir()
    save_model(str(folder), bert_tf.Learner(bert_tf.BertEncoder(config), []))
    shutil.copy(model / "vocab.txt", folder)
    (tmp_path / "words.txt").write_text("a\ta\t1\nb\tb\t2\n")
    job = senses.SensesFlags(input_file=[str(tmp_path / "words.txt")], neighbours=["1"],
                             eval_input_file=str(tmp_path / "words.txt"), layer=2)
    senses.main(flags_of(folder, tmp_path / "out"), job)
    with pytest.raises(InputError, match="--layer is 3, but the model has 2 layers"):
        senses.main(flags_of(folder, tmp_path / "out"), dataclasses.replace(job, layer=3))


def test_dependencies(model, tmp_path, capsys, drawn):
    line = "{}\t{}\t_\tX\t_\t_\t{}\t{}\t_\t_\n"
    (tmp_path / "a.conllu").write_text("".join(
        "".join(line.format(word + 1, letter * 2, word, "root" if not word else "obj:x")
                for word, letter in enumerate(letters)) + "\n" for letters in ("abcd", "ef", "c")))
    job = dependencies.DependenciesFlags(str(tmp_path / "a.conllu"), str(tmp_path / "a.conllu"))
    dependencies.main(flags_of(model, tmp_path / "out"), job)
    found = json.loads((tmp_path / "out/dependencies.json").read_text())
    assert set(found["relations"]) == {"all", "obj"}
    assert found["relations"]["obj"] == found["relations"]["all"]
    assert found["relations"]["all"]["words"] == 4
    assert found["relations"]["all"]["best_offset"] == -1
    assert found["uas"]["distance -1"] == found["uas"]["attention and words"] == 1
    assert "obj" in capsys.readouterr().out
    vectors = tmp_path / "glove.txt"
    vectors.write_text("".join(f"{2 * letter} {n} 1\n" for n, letter in enumerate("abcde")))
    job = dataclasses.replace(job, word_vectors=str(vectors))
    dependencies.main(flags_of(model, tmp_path / "glove"), job)
    assert "12 of 14 words have a vector" in capsys.readouterr().out
    found = json.loads((tmp_path / "glove/dependencies.json").read_text())
    assert found["uas"]["attention and words"] == 1
    sentences = [dependencies.Parsed(np.zeros(0), [], np.ones((2, 5)))]
    given, = dependencies.with_vectors(sentences, [["BB", "ff"]], str(vectors))
    assert given.vectors.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(InputError, match="glove.txt has no word of the treebank"):
        dependencies.with_vectors(sentences, [["x", "y"]], str(vectors))
    with pytest.raises(InputError, match="--word_vectors: there is no file"):
        dependencies.main(flags_of(model, tmp_path / "none"), dataclasses.replace(
            job, word_vectors=str(tmp_path / "none.txt")))
    assert not (tmp_path / "none").exists()
    for number, head, message in ((1, 7, "heads 7"), (1, 1, "heads 1"), (2, 0, "numbers 2")):
        (tmp_path / "b.conllu").write_text(line.format(number, "a", head, "obj"))
        with pytest.raises(InputError, match=f"b.conllu: the sentence 'a' of 1 word has the "
                           f"{message}; "):
            dependencies.main(flags_of(model, tmp_path / "out"), dataclasses.replace(
                job, eval_input_file=str(tmp_path / "b.conllu")))
    (tmp_path / "b.conllu").write_text(f"{line.format(1, 'a', 0, 'root')}\n" * 2)
    for flag in ("input_file", "eval_input_file"):
        with pytest.raises(InputError, match="b.conllu: no word of its sentences has a head"):
            dependencies.main(flags_of(model, tmp_path / "out"), dataclasses.replace(
                job, **{flag: str(tmp_path / "b.conllu")}))


SENTENCES = ["abc d e .", "f a", "j i h g f", "c", "e e d", "b a . c"]


def write_task(folder, name, config, labels):
    """A model of a task with the examples of its development set, whose metric is not constant."""
    keras.utils.set_random_seed(4)
    folder.mkdir()
    task = find_task(name)
    objective = (bert_tf.Regression(config) if task.kind.name == "regression"
                 else bert_tf.Classification(config, 2))
    learner = bert_tf.Learner(networks.build(config), [objective])
    save_model(folder, learner)
    SavedTask(task, 24, True, {}, task.kind.num_texts(task)).write(folder)
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in TOKENS))
    if task.kind.name == "regression":
        header = "index genre filename year old_index source1 source2 sentence1 sentence2 score"
        rows = [[i, *"abcdef", text, text[::-1], label]
                for i, (text, label) in enumerate(zip(SENTENCES, labels))]
        lines = [header.split(), *rows]
    else:
        lines = [["gj04", label, "", text] for text, label in zip(SENTENCES, labels)]
    (folder / "dev.tsv").write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))
    return learner


def test_heads(tmp_path):
    """The scores without a head equal those of the encoder's own mask of heads."""
    labels = [0, 1, 1, 0, 1, 0]
    config = EncoderConfig.preset("tiny", vocab_size=len(TOKENS), hidden_size=32,
                                  intermediate_size=32, max_position_embeddings=24,
                                  initializer_range=0.5)
    learner = write_task(tmp_path / "model", "cola", config, labels)
    heads.main(TaskFlags(task="cola", data_dir=str(tmp_path / "model")), heads.HeadsFlags(
        model_dir=str(tmp_path / "model"), output_dir=str(tmp_path / "out"), form="zero"))
    found = json.loads((tmp_path / "out" / "heads.json").read_text())
    tokenizer = tokenization.open_tokenizer(str(tmp_path / "model"), True)
    batch = Texts(SENTENCES, tokenizer, 24).pack(np.arange(len(SENTENCES)))

    def score(off):
        mask = np.ones((2, 2), "float32")
        for place in off:
            mask[place] = 0
        outputs = learner.encoder(batch, head_mask=mask)
        logits = np.array(learner.objectives[0](outputs, batch, learner.encoder.embedding_table))
        return 100 * matthews_corrcoef(labels, logits.argmax(-1))

    assert found["metric"] == "matthews"
    assert found["score"] == pytest.approx(score([]), abs=0.01)
    for layer in range(2):
        for head in range(2):
            assert found["without_head"][layer][head] == pytest.approx(
                score([(layer, head)]), abs=0.01)
        assert found["without_layer"][layer] == pytest.approx(
            score([(layer, 0), (layer, 1)]), abs=0.01)
    mask = np.array(batch["input_mask"]) > 0
    for entropies, maps in zip(found["attention_entropy"], learner.encoder(
            batch, return_attention=True)["attention_probs"], strict=True):
        rows = np.moveaxis(stats.entropy(maps, axis=-1), 1, -1)             # [B, S, N]
        assert entropies == pytest.approx(rows[mask].mean(0), rel=1e-4)
    assert (tmp_path / "out" / "heads.png").stat().st_size > 5_000


def test_heads_are_chosen_anew_on_other_examples(tmp_path, drawn):
    """The file has as many examples as before, with opposite labels."""
    config = EncoderConfig.preset("tiny", vocab_size=len(TOKENS), hidden_size=32,
                                  intermediate_size=32, max_position_embeddings=24,
                                  num_hidden_layers=1, initializer_range=0.5)
    labels = [0.0, 1.5, 3.0, 4.5, 5.0, 2.0]
    write_task(tmp_path / "model", "sts-b", config, labels)
    files = TaskFlags(task="sts-b", data_dir=str(tmp_path / "model"))
    job = heads.HeadsFlags(model_dir=str(tmp_path / "model"), output_dir=str(tmp_path / "out"),
                           reverse_head_mask=True)
    header, *rows = (tmp_path / "model" / "dev.tsv").read_text().splitlines()

    def run(labels):
        (tmp_path / "model" / "train.tsv").write_text("\n".join([header, *(
            f"{row.rpartition(chr(9))[0]}\t{label}" for row, label in zip(rows, labels))]) + "\n")
        heads.main(files, job)
        found = json.loads((tmp_path / "out" / "heads.json").read_text())
        return found["without_head"], np.array(found["one_head_alone"][0]["scores_to_choose"])

    (scores, first), (again, other) = run(labels), run([5 - label for label in labels])
    assert np.abs(first).min() > 1 and scores == again
    np.testing.assert_allclose(other, -first, rtol=1e-4)


def test_heads_that_layers_share(tmp_path, drawn):
    config = EncoderConfig.preset("tiny", vocab_size=len(TOKENS), hidden_size=32,
                                  intermediate_size=32, max_position_embeddings=24,
                                  model_type="albert", embedding_size=16, num_hidden_groups=1)
    write_task(tmp_path / "model", "cola", config, [0, 1, 1, 0, 1, 0])
    files = TaskFlags(task="cola", data_dir=str(tmp_path / "model"))
    job = functools.partial(heads.HeadsFlags, model_dir=str(tmp_path / "model"),
                            output_dir=str(tmp_path / "out"))
    heads.main(files, job())
    found = json.loads((tmp_path / "out" / "heads.json").read_text())
    assert found["layers"] == ["1-2"] and np.shape(found["without_head"]) == (1, 2)
    own = TaskFlags(dev_file="dev.tsv", data_dir=files.data_dir, header=False, text_a_column="3",
                    label_column="1")
    for task_flags, change, message in (
            (TaskFlags(task="sts-b"), {}, "--task=sts-b is of the kind regression"),
            (TaskFlags(task="cola", data_dir=str(tmp_path)), {}, "there is no train.tsv"),
            (TaskFlags(), {}, "--task must be given: .*model was trained for cola"),
            (files, {"model_dir": str(tmp_path)}, "--model_dir"),
            (files, {"reverse_head_mask": True, "output_dir": str(tmp_path / "new")},
             "train.tsv"),      # of --choose_split
            (own, {"reverse_head_mask": True}, "^--choose_split=train needs --train_file"),
            (files, {"split": "train"}, "train.tsv")):
        with pytest.raises(InputError, match=message):
            heads.main(task_flags, job(**change))
    assert not (tmp_path / "new" / "scores.json").exists()
    with pytest.raises(InputError, match="--examples is -1"):
        job(examples=-1)
    # Of a user's own files, flags name the columns.
    saved = SavedTask.require(str(tmp_path / "model"), "model_dir")
    dataclasses.replace(saved, task=dataclasses.replace(saved.task, name=OWN)).write(
        tmp_path / "model")
    with pytest.raises(InputError, match="--task must be given .one of cola"):
        heads.main(TaskFlags(), job())
    heads.main(own, job(output_dir=str(tmp_path / "own")))
    assert json.loads((tmp_path / "own" / "heads.json").read_text())["metric"]


def test_a_network_without_such_heads_is_refused_before_texts_are_read(tmp_path):
    write_task(tmp_path / "model", "cola", UniversalConfig(
        vocab_size=len(TOKENS), hidden_size=16, num_attention_heads=2, intermediate_size=16,
        num_hidden_layers=1, max_position_embeddings=24), [0, 1, 1, 0, 1, 0])
    with pytest.raises(InputError, match="model, of the type universal, is not an encoder like"):
        heads.main(TaskFlags(task="cola", data_dir=str(tmp_path)), heads.HeadsFlags(
            model_dir=str(tmp_path / "model"), output_dir=str(tmp_path / "out")))


def test_fixed_patterns(tmp_path, monkeypatch):
    """The figures are those of the models that are left."""
    monkeypatch.setattr(fixed_patterns, "_TIMED_STEPS", 1)
    tiny.write_records(tmp_path / "train.tfrecord", 16)
    tiny.write_records(tmp_path / "held.tfrecord", 8, seed=1)
    config = tiny.config(num_attention_heads=8, num_hidden_layers=1)
    config.to_json_file(tmp_path / "config.json")
    job = functools.partial(
        fixed_patterns.PatternsFlags, input_file=[str(tmp_path / "train.tfrecord")],
        eval_input_file=[str(tmp_path / "held.tfrecord")],
        bert_config_file=str(tmp_path / "config.json"))
    settings = TrainSettings(
        output_dir=str(tmp_path / "out"), train_batch_size=4, num_train_steps=1,
        num_warmup_steps=0, eval_batch_size=8, learning_rate=1e-2)
    fixed_patterns.main(job(variants=["fixed"], num_seeds=2), settings)
    found = json.loads((tmp_path / "out" / "patterns.json").read_text())
    assert bert_tf.BertEncoder(config).count_params() - found["fixed"]["12345"]["weights"] == (
        2 * 33 * 28)
    assert found["fixed"]["12345"]["masked_lm/loss"] != found["fixed"]["12346"]["masked_lm/loss"]
    batch = tiny.batch(tiny.write_records(tmp_path / "again.tfrecord", 8, seed=1), slice(None))
    learner = keras.models.load_model(tmp_path / "out" / "fixed" / "seed12346" / "model.keras")
    assert learner.encoder.config.fixed_heads == bert_tf.FixedPatternConfig.fixed_heads

    def loss():
        total, count = learner.measure(batch)["masked_lm"]["loss"]
        return float(total / count)

    assert found["fixed"]["12346"]["masked_lm/loss"] == pytest.approx(loss(), rel=1e-4, abs=1e-4)
    value = learner.encoder.layers_[0].attention.value
    for weight in (value.kernel, value.bias):
        weight.assign(weight.numpy() * (np.arange(32) < 28))
    assert found["fixed"]["12346"]["loss_without_learned"] == pytest.approx(loss(), abs=1e-4)
    for change, message in (({"variants": ["fixed_words"]}, "token_boundary"),
                            ({"input_file": [str(tmp_path / "no")]}, "--input_file")):
        with pytest.raises(InputError, match=message):
            fixed_patterns.main(job(**change), settings)
    tiny.config().to_json_file(tmp_path / "config.json")
    with pytest.raises(InputError, match="2 heads; seven"):
        fixed_patterns.main(job(), settings)

"""Attention of heads against the original's figures, and the page of its maps."""

import base64
import gzip
import html
import json
import random
import re
import shutil
import subprocess
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from matplotlib import figure

from bert_tf import analysis, networks, objectives
from bert_tf.analysis import patterns, pictures
from bert_tf.analysis.page import readable, write_page
from bert_tf.analysis.reading import Reading
from bert_tf.analysis.statistics import KINDS, TITLES, Statistics, entropy, titles
from bert_tf.config import EncoderConfig
from bert_tf.tokenization import Vocabulary, WordpieceTokenizer, open_tokenizer
from bert_tf.tokenization.vocabulary import BERT_ROLES
from tests.goldens import at_hand

CLARK = {"self": "avg_self", "right": "avg_right", "left": "avg_left", "sep": "avg_sep",
         "sep_from_sep": "avg_sep_sep", "sep_from_rest": "avg_rest_sep", "cls": "avg_cls",
         "punctuation": "avg_punct", "entropy": "entropy", "entropy_from_cls": "entropy_from_cls"}


@pytest.fixture(name="maps", scope="module")
def fixture_maps(test_data):
    return np.load(test_data / "golden" / "attention_analysis" / "maps_seed1.npz")


@pytest.fixture(name="network", scope="module")
def fixture_network():
    keras.utils.set_random_seed(3)
    return networks.build(EncoderConfig(40, 16, 2, 2, 32, type_vocab_size=2,
                                        max_position_embeddings=16, initializer_range=0.3))


def kinds_of(tokens):
    kinds = {"cls": tokens == "[CLS]", "sep": tokens == "[SEP]",
             "punctuation": np.isin(tokens, [".", ","])}
    return {**kinds, "rest": ~np.logical_or.reduce(list(kinds.values()))}


def test_statistics_equal_the_originals(maps):
    statistics, distances = Statistics(), 0
    for text in range(3):
        attention = maps[f"doc{text}/attns"]
        statistics.add(attention, kinds_of(maps[f"doc{text}/tokens"]))
        distances = distances + analysis.jensen_shannon(attention)
    found = statistics.result()
    for name, theirs in CLARK.items():
        np.testing.assert_allclose(found[name], maps[f"clark/{theirs}"], rtol=0, atol=1e-6)
    assert statistics.uniform_entropy == pytest.approx(maps["clark/uniform_entropy"], abs=1e-6)
    np.testing.assert_allclose(distances, maps["clark/js_distances"], rtol=0, atol=1e-5)
    every = sum(maps[f"doc{text}/attns"].sum(-1).mean(-1) for text in range(3)) / 3
    np.testing.assert_allclose(sum(found[kind] for kind in KINDS), every, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("network", at_hand("vocabs/{}/spiece.model", ("t5",)))
def test_text_is_readable_where_a_blank_is_a_token(network, test_data):
    tokenizer = open_tokenizer(str(test_data / f"vocabs/{network}/spiece.model"))
    ids = [*tokenizer.encode("translate a"), *tokenizer.encode("日")]
    assert tokenizer.blank in tokenizer.tokens(ids)
    assert readable(ids, tokenizer) == "translate a <unk>"
    assert titles(tokenizer.vocabulary)["sep"] == "</s>"


def test_words_equal_the_originals(maps):
    words = json.loads(str(maps["words/alignment"]))
    for reading in ("mean", "first", "max"):
        found = analysis.word_attention(maps["doc0/attns"], words, reading)
        np.testing.assert_allclose(found, maps[f"words/{reading}"], rtol=0, atol=1e-6)


def test_comparisons_equal_the_originals(maps):
    attention, context = maps["doc0/attns"], maps["are16/context"]
    unit = context / np.linalg.norm(context, axis=-1, keepdims=True)
    next_heads = analysis.cosine(attention, np.roll(attention, 1, 1))
    for found, expected in (
            (analysis.pairwise_divergence(attention), maps["are16/pairwise_kl"]),
            (analysis.agreement(attention), maps["are16/attention_disagreement"]),
            (analysis.agreement(unit), maps["are16/output_disagreement"]),
            (analysis.distance_of_maximum(attention), maps["are16/distance"]),
            (next_heads[:, [1, 2, 0]], maps["kovaleva/cosine_to_next_head"][:, [1, 2, 0]]),
            (analysis.largest_to(attention, [7, 13]), maps["kovaleva/to_sep"]),
            (analysis.largest_to(attention, [0]), maps["kovaleva/to_cls"]),
            (analysis.largest_to(attention, [2, 5]), maps["kovaleva/to_tokens_2_5"]),
            (analysis.largest_between(attention, [3, 8], [1, 9]),
             maps["kovaleva/pairs_3to1_8to9"])):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_segments_equal_the_originals(test_data):
    path = test_data / "golden" / "attention_analysis" / "segments_seed1.json.gz"
    expected = json.loads(gzip.open(path).read())
    tokenizer = open_tokenizer(str(test_data / "vocabs" / "bert-base-uncased"))
    documents = analysis.encode_documents(str(test_data / "text" / "books_sent.txt"), tokenizer,
                                          3000)
    pairs = analysis.clark_segments(documents, expected["max_sequence_length"],
                                    expected["num_docs"], random.Random(0))
    ids = [analysis.pack([pair], tokenizer)["input_ids"][0] for pair in pairs]
    assert [tokenizer.tokens(row) for row in ids] == [
        example["tokens"] for example in expected["shuffled"]]


def test_points_keep_their_distances():
    points = np.random.default_rng(0).standard_normal((9, 2))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    found = analysis.scale(distances)
    np.testing.assert_allclose(np.linalg.norm(found[:, None] - found, axis=-1), distances,
                               atol=1e-9)


def test_a_map_made_to_be_of_a_class_is_of_it():
    rng = np.random.default_rng(0)
    for label, name in enumerate(patterns.CLASSES):
        for _ in range(20):
            n = int(rng.integers(24, 65))
            middle = int(rng.integers(n // 3, 2 * n // 3))
            special = np.isin(np.arange(n), [0, middle, n - 1])
            attention = patterns._synthetic(label, n, middle, rng)
            np.testing.assert_allclose(attention.sum(-1), 1)
            numbers = patterns.describe(attention, special, (np.arange(n) > middle).astype(int))
            assert patterns.CLASSES[patterns.classify(numbers)] == name, numbers
    assert patterns.picture(np.eye(40)).shape == patterns.picture(np.eye(9)).shape == (32, 32)


def test_a_head_that_is_off_looks_at_all_alike(network):
    inputs = {"input_ids": np.arange(24, dtype="int32").reshape(2, 12),
              "input_mask": (np.arange(12) < [[12], [7]]).astype("int32")}
    before = network(inputs, return_attention=True)
    mask = np.ones((2, 2), "float32")
    mask[1, 0] = 0
    without = np.array(network(inputs, head_mask=mask)["sequence_output"])
    with analysis.disabled(network, [(1, 0)], "zero"):
        np.testing.assert_allclose(network(inputs)["sequence_output"], without,
                                   rtol=1e-6, atol=1e-6)
    with analysis.disabled(network, [(1, 0)]):
        found = np.array(network(inputs, return_attention=True)["attention_probs"])
    expected = np.array(before["attention_probs"])
    expected[1, :, 0] = (inputs["input_mask"] / inputs["input_mask"].sum(1, keepdims=True))[:, None]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(network(inputs)["sequence_output"], before["sequence_output"])


def test_disabled_heads_equal_the_original(test_data):
    from bert_tf import Classification
    golden = np.load(test_data / "golden" / "attention_analysis" / "bert_tiny_seed1.npz")
    loaded = Classification.from_pretrained(
        test_data / "weights" / "bert-tiny-question-classifier", num_labels=2)
    config = EncoderConfig.from_dict({**loaded.encoder.config.to_dict(), "hidden_act": "gelu_erf"})
    encoder, head = networks.build(config), objectives.Classification(config, num_labels=2)
    for mine, theirs in ((encoder, loaded.encoder), (head, loaded.objectives[0])):
        mine.set_weights(theirs.get_weights())
    inputs = {name: golden[f"uniform/{name}"] for name in ("input_ids", "input_mask")}
    for name, heads in (("none", []), ("layer0_head1", [(0, 1)]), ("layer1_head0", [(1, 0)]),
                        ("layer1", [(1, 0), (1, 1)])):
        with analysis.disabled(encoder, heads):
            logits = head(encoder(inputs), inputs, encoder.embedding_table, None)
        np.testing.assert_allclose(logits, golden[f"uniform/{name}"], rtol=0, atol=1e-5)


def test_gradients_by_attention_agree_with_those_by_scores(network):
    """A score's derivative is a_ij (g_ij - sum_k a_ik g_ik), where g are those of the weights."""
    encoder = networks.build(EncoderConfig.from_dict({**network.config.to_dict(),
                                                      "num_hidden_layers": 1}))
    objective = objectives.MaskedLM(encoder.config)
    rng = np.random.default_rng(0)
    batch = {"input_ids": rng.integers(5, 40, (2, 8)).astype("int32"),
             "input_mask": (np.arange(8) < [[8], [6]]).astype("int32"),
             "segment_ids": np.zeros((2, 8), "int32"),
             "masked_lm_positions": np.array([[1, 3], [2, 4]]),
             "masked_lm_ids": np.array([[7, 8], [9, 10]]),
             "masked_lm_weights": np.ones((2, 2), "float32")}
    weights, gradients = analysis.attention_gradients(encoder, objective, batch)
    bias = tf.Variable(tf.zeros((2, 2, 8, 8)))
    with tf.GradientTape() as tape:
        logits = objective(encoder(batch, attention_bias=bias), batch, encoder.embedding_table,
                           None)
        total, count = objective.loss(logits, *objective.targets(batch))
        loss = total / count
    expected = tape.gradient(loss, bias).numpy()[:, :, :6, :6]
    weights, gradients = weights[0, :, :, :6, :6], gradients[0, :, :, :6, :6]
    found = weights * (gradients - (weights * gradients).sum(-1, keepdims=True))
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-7, atol=1e-7)
    assert np.abs(expected[1]).max() > 1e-5


def test_each_text_has_its_share_of_masks(network):
    """A short text beside a long one, and one without any ordinary token."""
    vocabulary = types.SimpleNamespace(cls_id=1, sep_id=2, pad_id=0, mask_id=3)
    lengths = np.array([[20], [4], [0]])
    ids = np.where(np.arange(21) <= lengths, 9, 0)
    ids[:, 0] = 1
    batch = {"input_ids": ids, "input_mask": (ids > 0).astype("int32"),
             "segment_ids": np.zeros_like(ids)}
    masked = analysis.mask_tokens(batch, vocabulary, 0.15, np.random.default_rng(0))
    assert masked["masked_lm_weights"].sum(1).tolist() == [3, 1, 0]
    assert (masked["input_ids"] == 3).sum(1).tolist() == [3, 1, 0]
    alone = {name: values[2:, :1] for name, values in batch.items()}
    _, gradients = analysis.attention_gradients(
        network, objectives.MaskedLM(network.config),
        analysis.mask_tokens(alone, vocabulary, 0.15, np.random.default_rng(0)))
    assert not gradients.any()


def test_entropy_of_known_rows():
    rows = np.array([[0.25] * 4, [1.0, 0, 0, 0]])
    found = entropy(rows)
    assert found[0] == pytest.approx(np.log(4)) and 0 < found[1] < 2e-3


def test_letters_without_a_font_are_told_of_once(tmp_path, capsys):
    for name, text in (("a.png", "可以 in 100"), ("b.png", "in 100")):
        with pictures.picture(str(tmp_path / name), 1, 1, (1, 1)) as (_, axes):
            axes[0, 0].set(title=text)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "a.png shows boxes for letters that matplotlib's" in said[0]


def test_pictures_name_the_vocabularys_own_tokens(tmp_path, monkeypatch):
    legends, save = [], figure.Figure.savefig

    def noted(drawn, *arguments, **options):
        legends.append({text.get_text() for axis in drawn.axes
                        for text in axis.get_legend().get_texts()})
        save(drawn, *arguments, **options)

    monkeypatch.setattr(figure.Figure, "savefig", noted)
    own = titles(types.SimpleNamespace(special={"cls": "<s>", "sep": "</s>"}))
    found = {name: np.full((1, 3), 0.7 * (name in ("cls", "sep"))) for name in TITLES}
    found["cls"][0, 0] = found["sep"][0, 1] = 0
    pictures.draw_statistics(str(tmp_path / "a.png"), "T5", found, 1.0, own)
    pictures.draw_plane(str(tmp_path / "b.png"), "T5", np.eye(3)[:, :2], found, own)
    for legend in legends:
        assert {"<s>", "</s>"} <= legend and not {"[CLS]", "[SEP]"} & legend
    assert titles(types.SimpleNamespace(special=BERT_ROLES)) == TITLES
    assert own["sep_from_rest"] == "rest to </s>"


def test_dollars_in_a_title_are_no_formula(tmp_path):
    path = tmp_path / "heads.png"
    pictures.draw_heads(str(path), "$ 100 at 5 % interest , $ 200 { ...", np.ones((1, 2, 3, 3)))
    assert path.stat().st_size


# The page

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "</script>", "."]
# Rests the pointer on tokens, clicks, and writes what can be seen then into the page.
ACTIONS = """<script>
const seen = [], tokens = () => [...byId("tokens").children];
const hover = i => { tokens()[i].dispatchEvent(new MouseEvent("mouseenter"));
                     seen.push([byId("says").textContent, tokens().map(t => t.title)]); };
hover(1);
document.querySelector('[data-head="1,2"]').click();
hover(3);
byId("to").click();
hover(3);
const figures = byId("figures").textContent, box = byId("map").getBoundingClientRect();
byId("map").dispatchEvent(new MouseEvent("mousemove", {
  clientX: box.left + 0.9 * box.width / 6, clientY: box.top + 4.5 * box.height / 6}));
const map = byId("says").textContent;
byId("text").value = 1;
byId("text").dispatchEvent(new Event("change"));
byId("from").click();
hover(0);
seen.push(map, figures, document.querySelectorAll("td canvas").length,
          tokens().map(token => token.textContent));
document.title = JSON.stringify(seen);
</script></html>"""


# Rests the pointer on a token of each text, and on the map.
ACTIONS_ACROSS = """<script>
const seen = [], box = byId("map").getBoundingClientRect();
for (const [id, i] of [["rows", 2], ["tokens", 1]]) {
  byId(id).children[i].dispatchEvent(new MouseEvent("mouseenter"));
  seen.push([byId("says").textContent, [...byId("rows").children].map(t => t.title),
             [...byId("tokens").children].map(t => t.title)]);
}
byId("map").dispatchEvent(new MouseEvent("mousemove", {
  clientX: box.left + 0.9 * box.width, clientY: box.top + 0.5 * box.height}));
seen.push(byId("says").textContent, byId("map").width, byId("map").height);
document.title = JSON.stringify(seen);
</script></html>"""


@pytest.fixture(name="page")
def fixture_page(tmp_path):
    rng = np.random.default_rng(0)
    ids = np.array([2, 5, 6, 7, 8, 3], np.int32)
    attention = rng.dirichlet(np.full(6, 0.5), (2, 3, 6)).astype(np.float32)
    reading = Reading(ids, np.zeros(6, np.int32), attention)
    path = tmp_path / "attention.html"
    other = Reading(ids[[0, 3, 5]], np.zeros(3, np.int32), np.full((2, 3, 3, 3), 1 / 3, np.float32))
    write_page(str(path), "A <title>", [reading, other], WordpieceTokenizer(Vocabulary(TOKENS)))
    return path.read_text(encoding="utf-8"), reading, path


def test_the_page_is_whole_and_holds_the_maps(page):
    text, reading, _ = page
    assert not re.findall(r"(?:src|href)\s*=", text) and "http" not in text
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])
    assert data["title"] == "A <title>" and (data["layers"], data["heads"]) == (2, 3)
    shown = data["texts"][0]
    assert shown["tokens"] == ["[CLS]", "a", "##b", "</script>", ".", "[SEP]"]
    assert shown["pieces"] == [0, 0, 1, 0, 0, 0]
    coded = np.frombuffer(base64.b64decode(shown["attention"]), np.uint8).reshape(2, 3, 6, 6)
    np.testing.assert_allclose((coded / 255) ** 2, reading.attention, atol=0.005)


def test_the_page_names_the_vocabularys_own_tokens(tmp_path):
    roles = {"cls": "a", "sep": "</script>"}
    reading = Reading(np.array([5, 7]), np.zeros(2, np.int32), np.full((1, 1, 2, 2), 0.5))
    write_page(str(tmp_path / "p.html"), "Own", [reading], WordpieceTokenizer(
        Vocabulary(TOKENS, roles=roles)))
    shown = json.loads(re.search(r'type="application/json">(.*?)</script>', (
        tmp_path / "p.html").read_text(), re.S)[1])["texts"][0]["figures"][0][0]
    assert shown["a"] == shown["</script>"] == "50%" and "[CLS]" not in shown


def run_actions(path, actions):
    """Returns what the actions saw, in a headless browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    path.write_text(path.read_text(encoding="utf-8").replace("</html>", actions), encoding="utf-8")
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                           path.as_uri()], capture_output=True, text=True, check=True, timeout=600)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)[1]
    return json.loads(html.unescape(title))


def shares(titles):
    return [float(value.rstrip("%")) / 100 for value in titles]


def test_a_page_of_two_texts(tmp_path):
    """The tokens of one text look at the other's, in maps that are not square."""
    attention = np.random.default_rng(0).dirichlet(np.full(4, 0.5), (1, 2, 3)).astype(np.float32)
    reading = Reading(np.array([5, 6, 8, 3]), np.zeros(4, np.int32), attention,
                      from_ids=np.array([0, 7, 8]))
    path = tmp_path / "attention.html"
    write_page(str(path), "Two", [reading], WordpieceTokenizer(Vocabulary(TOKENS)))
    data = json.loads(re.search(r'type="application/json">(.*?)</script>',
                                path.read_text(encoding="utf-8"), re.S)[1])
    shown = data["texts"][0]
    assert shown["tokens"] == ["a", "##b", ".", "[SEP]"]
    assert shown["from"]["tokens"] == ["[PAD]", "</script>", "."]
    assert "itself" not in "".join(shown["figures"][0][0])
    (says, rows, tokens), (other, rows_2, tokens_2), on_map, width, height = run_actions(
        path, ACTIONS_ACROSS)
    best = shown["tokens"][attention[0, 0, 2].argmax()]
    assert says.startswith(f". looks at {best} ") and rows == [""] * 3
    np.testing.assert_allclose(shares(tokens), attention[0, 0, 2], atol=0.006)
    assert other.startswith("##b is looked at by ") and tokens_2 == [""] * 4
    np.testing.assert_allclose(shares(rows_2), attention[0, 0, :, 1], atol=0.006)
    assert on_map.startswith("</script> \u2192 [SEP]: ") and (width, height) == (4, 3)


def test_hovering_shows_the_weights(page):
    _, reading, path = page
    first, second, third, fourth, on_map, figures, canvases, tokens = run_actions(path, ACTIONS)
    for (_, hovered), weights in ((first, reading.attention[0, 0, 1]),
                                   (second, reading.attention[1, 2, 3]),
                                   (third, reading.attention[1, 2, :, 3])):
        np.testing.assert_allclose(shares(hovered), weights, atol=0.006)
    best = TOKENS[reading.input_ids[reading.attention[0, 0, 1].argmax()]]
    assert first[0].startswith(f"a looks at {best} ")
    assert third[0].startswith("</script> is looked at by")
    assert figures.startswith("layer 2, head 3: [CLS] ") and canvases == 6
    weight = reading.attention[1, 2, 4, 0]
    assert on_map.startswith(". \u2192 [CLS]: ") and float(on_map[11:-1]) / 100 == pytest.approx(
        weight, abs=0.006)
    assert fourth[0].startswith("[CLS] looks at")
    assert fourth[1] == ["33.2%"] * 3       # 1/3 in the page's 8 bits
    assert tokens == ["[CLS]", "</script>", "[SEP]"]

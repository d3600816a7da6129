"""The page of attention maps: its data, and in a headless browser, if there is one, its script."""

import base64
import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest

from bert_tf.analysis.page import write_page
from bert_tf.analysis.reading import Reading
from bert_tf.tokenization import Vocabulary, WordpieceTokenizer

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
    """The page, the first of the two readings on it, and its path."""
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
                           path.as_uri()], capture_output=True, text=True, check=True, timeout=60)
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
    for (_, titles), weights in ((first, reading.attention[0, 0, 1]),
                                 (second, reading.attention[1, 2, 3]),
                                 (third, reading.attention[1, 2, :, 3])):
        np.testing.assert_allclose(shares(titles), weights, atol=0.006)
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

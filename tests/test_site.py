"""The site has all pages, and a reference that the code decides."""

import html
import json
import os
import re

import pytest

from run_scripts import commands
from tests.programs import fields
from tests.test_docs import ROOT

mkdocs_config = pytest.importorskip("mkdocs.config")


@pytest.fixture(scope="module", name="site")
def fixture_site(tmp_path_factory):
    """The built site. A broken link, a page that is not in the navigation, or any other warning
    ends the build."""
    from mkdocs.commands.build import build
    folder = tmp_path_factory.mktemp("site")
    config = mkdocs_config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


def text_of(site, path):
    """The text of a page, without its marks."""
    return re.sub(r"<[^>]*>", "", (site / path).read_text(encoding="utf-8"))


def test_every_page_is_built(site):
    docs = ROOT / "docs"
    for path in docs.rglob("*.md"):
        assert (site / path.relative_to(docs).with_suffix("") / "index.html").exists(), path


def test_every_flag_has_its_row(site):
    for name in commands.program_names():
        page = text_of(site, f"reference/{name.replace(' ', '_').replace('--', '')}/index.html")
        for field in fields(name).values():
            assert f"--{field.name}" in page, f"{name} --{field.name}"


@pytest.mark.parametrize("page, words", [
    ("recipes", ["roberta", "arXiv:1907.11692", "--learning_rate"]),
    ("tasks", ["mrpc", "CoLA", "entity_f1"]), ("python", ["bert_tf.Predictor(", "Raises"])])
def test_the_reference_has_what_the_code_has(site, page, words):
    text = text_of(site, f"reference/{page}/index.html")
    assert [word for word in words if word not in text and word.lower() not in text] == []


def test_the_reference_has_lists_and_code(site):
    page = (site / "reference/bert-finetune/index.html").read_text(encoding="utf-8")
    assert "<dt><code>--labelled_test</code>, default <code>false</code></dt>" in page
    assert "<code>bert-finetune --train_file=mail.csv" in page and "Example:" not in page
    page = (site / "reference/bert-extract-text/index.html").read_text(encoding="utf-8")
    assert "Without <code>--input_file</code>" in page
    page = text_of(site, "reference/python/index.html")
    assert "Args:" not in page and "\n    weight_decay: float = 0.01,\n" in page


def test_long_commands_are_wrapped(site):
    for path in site.rglob("*.html"):
        for code in re.findall(r"<pre>(.*?)</pre>", path.read_text(encoding="utf-8"), re.S):
            code = html.unescape(re.sub(r"<[^>]*>", "", code))
            for command in re.findall(r"^bert-(?:.*\\\n)*.*", code, re.M):
                for line in command.split("\n"):
                    assert len(line) <= 82 or "#" in command or line.count(" --") < 2, path


def sections_of(site):
    with open(os.path.join(site, "search", "search_index.json"), encoding="utf-8") as file:
        return json.load(file)["docs"]


def test_the_search_shows_the_reference_last(site):
    for section in sections_of(site):
        is_reference = section["location"].startswith("reference/")
        assert (section.get("boost", 1) < 1) == is_reference


def test_the_search_finds_what_users_type(site):
    """As the site's search does: all words must be in the title or the text of one section."""
    sections = sections_of(site)
    pages = {"pretraining", "adapt", "data", "languages", "finetuning", "tasks", "suites",
             "using_a_model", "export", "weights", "several_machines"}
    texts = [re.sub(r"<[^>]*>", "", f"{section['title']} {section['text']}").lower()
             for section in sections if section["location"].partition("/")[0] in pages]
    for asked in ("download bert-base", "download GLUE", "resume killed", "several seeds",
                  "add words vocabulary", "flags GPU", "class imbalance", "freeze layers",
                  "layer-wise learning rate", "hyper-parameters", "early stopping", "domain adapt",
                  "upload hub", "push hub", "embeddings", "sentence similarity", "out of memory",
                  "mixed precision", "multi-label", "in the records", "[MASK] sentence",
                  "classifier in Python", "silence TensorFlow", "labels names", "Windows Mac",
                  "GPU memory BERT-Base", "how long training", "Hugging Face Hub name",
                  "continue training", "long texts truncated", "ModernBERT", "TensorBoard"):
        words = [rf"\b{word}" for word in re.findall(r"\w+", asked.lower())]
        assert any(all(re.search(word, text) for word in words) for text in texts), asked


@pytest.mark.parametrize("words", ["resume", "gradient_accumulation_steps", "hf download"])
def test_the_search_knows_it(site, words):
    with open(os.path.join(site, "search", "search_index.json"), encoding="utf-8") as file:
        assert words in file.read()

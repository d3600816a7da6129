"""The notebook is that of its pages, and its cells run, on a random model of one layer."""

import importlib.util
import json
import pathlib
import shlex

import pytest

import bert_tf
from tests import test_docs

ROOT = pathlib.Path(__file__).parent.parent
_spec = importlib.util.spec_from_file_location("make_notebooks", ROOT / "docs/make_notebooks.py")
make_notebooks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make_notebooks)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def test_the_notebook_is_up_to_date():
    assert make_notebooks.PATH.read_text() == make_notebooks.notebook(), (
        "run python docs/make_notebooks.py")


@pytest.mark.filterwarnings("error:The .*keys:UserWarning", "error:.*initial:UserWarning")
def test_cells_run(tmp_path, monkeypatch, eagerly):
    monkeypatch.chdir(tmp_path)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *".,?!", *LETTERS,
              *(f"##{letter}" for letter in LETTERS)]
    config = bert_tf.EncoderConfig.preset(
        "tiny", vocab_size=len(tokens), num_hidden_layers=1, hidden_size=16,
        num_attention_heads=2, intermediate_size=16)
    (tmp_path / "bert-tiny").mkdir()
    masked_lm = bert_tf.MaskedLM(config)
    bert_tf.Learner(bert_tf.BertEncoder(config), [masked_lm]).save("bert-tiny/model.keras")
    (tmp_path / "bert-tiny" / "vocab.txt").write_text("\n".join(tokens) + "\n")
    seen: dict = {}
    badge, install, *cells = json.loads(make_notebooks.PATH.read_text())["cells"]
    repository = make_notebooks.address()
    assert f"git+{repository}" in "".join(install["source"])
    assert (f"{repository.removeprefix('https://github.com')}/blob/main/docs/notebooks/"
            f"{make_notebooks.PATH.name})") in "".join(badge["source"])
    for cell in cells:
        code = "".join(cell["source"])
        if cell["cell_type"] != "code":
            continue
        if code.startswith("!curl"):
            continue
        if code.startswith("!"):
            test_docs.run(shlex.split(code.removeprefix("!")))
        else:       # fewer examples and epochs
            exec(code.replace("* 50", "* 2").replace("epochs=10", "epochs=2"), seen)
    assert seen["predictor"].saved_task.task.labels == ("question", "statement")
    assert "served" in seen

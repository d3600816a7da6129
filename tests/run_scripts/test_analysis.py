"""The commands of run_scripts/analysis on a tiny network: what they write."""

import json
import pathlib
import shutil

import numpy as np
import pytest

from bert_tf.errors import InputError
from run_scripts.analysis import (
    analyze_attention,
    analyze_identifiability,
    analyze_layers,
)
from run_scripts.analysis.model import ModelFlags

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


def flags_of(model, folder):
    return ModelFlags(init_checkpoint=str(model), output_dir=str(folder), max_seq_length=24)


def test_attention(model, tmp_path, capsys):
    job = analyze_attention.AttentionFlags(input_file=str(model / "text.txt"), num_docs=4,
                                           num_maps=2, fine_tuned_checkpoint=str(model))
    analyze_attention.main(flags_of(model, tmp_path), job)
    assert {path.name for path in tmp_path.iterdir()} == {
        "attention.html", "heads.png", "maps.npz", "plane.png", "statistics.json",
        "statistics.png"}
    found = json.loads((tmp_path / "statistics.json").read_text())
    assert found["texts"] == 4 and np.allclose(found["cosine"], 1)
    assert sum(found["classes"]) == pytest.approx(1)
    assert found["classes"] == found["fine_tuned_classes"]
    maps = np.load(tmp_path / "maps.npz")
    attention = maps["text1/attention"]
    assert attention.shape[-1] == len(maps["text1/input_ids"])
    np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
    assert "mean over the heads of a layer" in capsys.readouterr().out


def test_identifiability(model, tmp_path):
    job = analyze_identifiability.IdentifiabilityFlags(
        input_file=str(model / "text.txt"), lengths=["24", "99"], texts_per_length=2,
        identification_texts=6, attribution_texts=1, projections=2)
    analyze_identifiability.main(flags_of(model, tmp_path), job)
    found = json.loads((tmp_path / "identifiability.json").read_text())
    assert set(found["by_length"]) == {"24"}
    assert found["identified"]["cosine"][0] == 1
    assert (tmp_path / "identifiability.png").stat().st_size > 10_000


def test_layers(model, tmp_path):
    job = analyze_layers.LayersFlags(
        input_file=str(model / "words.txt"), eval_input_file=str(model / "words.txt"),
        tags=["pos=1", "chunk=2"])
    analyze_layers.main(flags_of(model, tmp_path), job)
    found = json.loads((tmp_path / "layers.json").read_text())
    assert found["probes"]["pos"]["metric"] == "tag_accuracy"
    assert found["probes"]["chunk"]["metric"] == "entity_f1"
    assert found["chunks"]["NP"]["words"] > 12
    assert np.allclose(np.diag(found["cka"]), 1)
    with pytest.raises(InputError, match="--tags"):
        analyze_layers.LayersFlags("a", "b", tags=["pos"]).columns()


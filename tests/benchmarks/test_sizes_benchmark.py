"""The command that measures networks of several sizes."""

import json
import re

import pytest

from benchmarks import sizes, tokenization
from benchmarks.runtimes import RuntimesFlags
from benchmarks.sizes import SizesFlags
from bert_tf.errors import InputError
from tests.training import tiny


def test_weights_and_time_of_a_network(tmp_path, capsys):
    config = tiny.config(num_hidden_groups=1, embedding_size=8, num_hidden_layers=2)
    path = str(tmp_path / "c.json")
    config.to_json_file(path)
    sizes.main(SizesFlags([path], max_seq_length=8, max_predictions_per_seq=2, train_batch_size=2,
                          num_train_steps=1, output_dir=str(tmp_path)))
    found = re.fullmatch(rf"{re.escape(path)} +([\d,]+) weights, +([\d,]+) with the heads +[\d.]+ "
                         r"CPU s a step\n", capsys.readouterr().out)
    encoder, everything = (int(number.replace(",", "")) for number in found.groups())
    kept = json.loads((tmp_path / "metrics.json").read_text())["metrics"]
    assert (kept["weights"], kept["weights_with_heads"]) == (encoder, everything)
    assert kept["cpu_seconds"] > 0
    # The masked LM's dense layer and norm of the embeddings' width, its bias, and the sentences'.
    assert everything - encoder == (32 * 8 + 8) + 2 * 8 + tiny.VOCAB + (32 * 2 + 2)


@pytest.mark.parametrize("model, message", [
    ("bert:giant", "--models=bert:giant: there is no size 'giant'"), ("bart:base", "'bart'"),
    ("absent.json", "absent.json")])
def test_networks_that_are_not_there(model, message):
    with pytest.raises(InputError, match=message):
        sizes.main(SizesFlags([model]))


@pytest.mark.parametrize("module, values, message", [
    (sizes, {"models": ["bert:tiny"], "train_batch_size": 0}, "--train_batch_size is 0"),
    (sizes, {"models": ["bert:tiny"], "max_seq_length": 0}, "--max_seq_length is 0"),
    (tokenization, {"input_file": [], "vocab_file": "", "rounds": 0}, "--rounds is 0")])
def test_nothing_is_not_measured(module, values, message):
    kind = {sizes: SizesFlags, tokenization: tokenization.TokenizationBenchmarkFlags}[module]
    with pytest.raises(InputError, match=message):
        module.main(kind(**values))


def test_numbers_of_examples_are_not_negative():
    with pytest.raises(InputError, match="examples is -1"):
        RuntimesFlags(init_checkpoint="", output_dir="", examples=-1).check()


def test_metrics_are_of_one_network(tmp_path):
    with pytest.raises(InputError, match="--output_dir: metrics.json holds one network"):
        sizes.main(SizesFlags(["bert:tiny", "bert:mini"], output_dir=str(tmp_path)))

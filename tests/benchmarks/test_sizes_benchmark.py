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


@pytest.mark.parametrize("values, message", [
    ({"models": ["bert:giant"]}, "--models=bert:giant: there is no size 'giant'"),
    ({"models": ["bart:base"]}, "'bart'"), ({"models": ["absent.json"]}, "absent.json"),
    ({"train_batch_size": 0}, "--train_batch_size is 0"),
    ({"max_seq_length": 0}, "--max_seq_length is 0"),
    ({"models": ["bert:tiny", "bert:mini"], "output_dir": "out"},
     "--output_dir: metrics.json holds one network")])
def test_networks_that_cannot_be_measured(values, message):
    with pytest.raises(InputError, match=message):
        sizes.main(SizesFlags(**{"models": ["bert:tiny"], **values}))


def test_numbers_of_other_benchmarks():
    with pytest.raises(InputError, match="--rounds is 0"):
        tokenization.main(tokenization.TokenizationBenchmarkFlags([], "", rounds=0))
    with pytest.raises(InputError, match="examples is -1"):
        RuntimesFlags(init_checkpoint="", output_dir="", examples=-1).check()

"""Floating-point operations of pre-training are those that google-research/electra's
flops_computation.py prints, at commit 8a46635."""

import pytest

from benchmarks.flops import PUBLISHED_FLOPS, FlopsFlags, count, main
from bert_tf.errors import InputError

PRINTED = {
    "elmo": 3.4114394716164127e+18, "xlnet": 3.856582065028608e+21, "gpt": 3.968752230785352e+19,
    "bert_small": 1.4187399146496e+18, "bert_base": 6.428335104e+19,
    "bert_large": 1.91720905883648e+20, "electra_small": 1.293743798272e+18,
    "electra_base": 6.424541834277683e+19, "electra_400k": 7.117606040895488e+20,
    "electra_1.75M": 3.113952642891776e+21, "roberta": 3.187221435776e+21,
    "albert": 3.113923955392512e+22, "t5_11b": 4.581900124212429e+22}


def test_all_models_that_electra_lists():
    assert PUBLISHED_FLOPS == pytest.approx(PRINTED, rel=1e-14)


@pytest.mark.parametrize("model, length, batch, steps, published", [
    ("bert:base", 512, 256, 1_000_000, "bert_base"),
    ("bert:large", 512, 256, 1_000_000, "bert_large"),
    ("electra:small", 128, 128, 1_000_000, "electra_small")])
def test_networks_of_recipes(model, length, batch, steps, published):
    job = FlopsFlags([model], max_seq_length=length, train_batch_size=batch, num_train_steps=steps)
    assert count(job, model) == pytest.approx(PRINTED[published], rel=1e-14)


def test_the_command_prints_both(capsys):
    main(FlopsFlags(["bert:tiny"], max_seq_length=16, train_batch_size=2, num_train_steps=3))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("these      bert:tiny ") and len(lines) == 14
    with pytest.raises(InputError, match="a XLNetConfig is not counted"):
        count(FlopsFlags(["xlnet:base"]), "xlnet:base")

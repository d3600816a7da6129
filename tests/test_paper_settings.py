"""Every default of fine-tuning equals a value that a paper, or its code, states."""

import collections
import dataclasses

import pytest

from bert_tf.finetuning import mixture, paper_defaults
from bert_tf.finetuning.jobs import MTDNN_DEFAULTS
from bert_tf.tasks.named import SQUAD, TASKS

_BERT = "arXiv:1810.04805, section 4.1: batch size of 32, 3 epochs; A.3: rates 5e-5, 3e-5, 2e-5"
_SHORT = "google-research/bert README.md: --max_seq_length=128"
_ALBERT = "arXiv:1909.11942, table 14"
_FAIRSEQ = "fairseq examples/roberta/config/finetuning/{}.yaml"
_ROBERTA_RACE = "fairseq examples/roberta/README.race.md"
_SPANBERT = "facebookresearch/SpanBERT README.md"
_ELECTRA = "google-research/electra configure_finetuning.py"
_ERNIE = "PaddlePaddle/ERNIE script/en_glue/ernie_base/{}/task.sh"
_XLNET = "arXiv:1906.08237, table 8"
_LSTM = "tensorflow/models research/adversarial_text README.md, graphs.py"

# (source, columns, rows); a row is the tasks, "" for all, and the values of the columns.
Table = tuple[str, tuple[str, ...], list[tuple]]
_RATE, _BATCH, _EPOCHS, _LENGTH = (
    "learning_rate", "train_batch_size", "num_train_epochs", "max_seq_length")
_STEPS, _WARMUP, _SHARE = "num_train_steps", "num_warmup_steps", "warmup_proportion"
_DECAY, _SCHEDULE, _STYLE = "weight_decay", "learning_rate_schedule", "squad_style"

_SUPER = {"boolq", "cb", "copa", "multirc", "record", "superglue-rte", "wic", "wsc", "wsc-ranking",
          "ax-b", "ax-g"}
# Defaults of tasks, which are BERT's.
TASK_TABLES: list[Table] = [
    (_SHORT, (_LENGTH,), [(tuple(set(TASKS) - {"race", "imdb", *_SUPER}), 128)]),
    (_BERT, (_RATE, _EPOCHS), [(tuple(set(TASKS) - _SUPER), 2e-5, 3.0)]),
    (_BERT, (_BATCH,), [(tuple(set(TASKS) - {"swag", *_SUPER}), 32)]),
    ("nyu-mll/jiant jiant/config/superglue_bert.conf", (_LENGTH, _BATCH, _RATE, _EPOCHS),
     [(tuple(_SUPER), 256, 4, 1e-5, 10.0)]),
    ("arXiv:1810.04805, section 4.4: 3 epochs with 2e-5 and a batch size of 16",
     (_RATE, _BATCH, _EPOCHS), [("swag", 2e-5, 16, 3.0)]),
    ("arXiv:1909.11942, table 14; zihangdai/xlnet README.md: 512 for RACE",
     (_LENGTH,), [("race", 512)]),
    ("zihangdai/xlnet README.md: 512 for IMDB", (_LENGTH,), [("imdb", 512)]),
    ("arXiv:1810.04805, section 4.2: 3 epochs with 5e-5 and a batch size of 32",
     (_RATE, _BATCH, _EPOCHS), [("squad", 5e-5, 32, 3.0)]),
    ("arXiv:1810.04805, section 4.3: 2 epochs with 5e-5 and a batch size of 48",
     (_RATE, _BATCH, _EPOCHS), [("squad_v2", 5e-5, 48, 2.0)]),
    ("google-research/bert README.md: --max_seq_length=384", (_LENGTH,),
     [(("squad", "squad_v2"), 384)])]

TABLES: dict[str, list[Table]] = {
    "roberta": [
        (_FAIRSEQ.format("cola"), (_RATE, _BATCH, _EPOCHS, _LENGTH, _DECAY, "optimizer", _SCHEDULE),
         [("", 1e-5, 16, 10.0, 512, 0.1, "fairseq_adam", "roberta")]),
        (_FAIRSEQ.format("cola") + ": 320 of 5336 updates; pooler_dropout 0", (
            _SHARE, "classifier_dropout"), [("", 0.06, 0.0)]),
        (_FAIRSEQ.format("{mnli,qnli,qqp,sst_2}"), (_BATCH,),
         [(("mnli", "qnli", "qqp", "sst-2"), 32)]),
        (_FAIRSEQ.format("{rte,sts_b}"), (_RATE,), [(("rte", "sts-b"), 2e-5)]),
        (_ROBERTA_RACE, (_EPOCHS, _DECAY, _SHARE, _SCHEDULE),
         [("race", 5.0, 0.01, 0.0, "constant")]),
        ("arXiv:1907.11692, table 10", (_RATE, _BATCH, _EPOCHS, _DECAY),
         [(("squad", "squad_v2"), 1.5e-5, 48, 2.0, 0.01)])],
    "spanbert": [
        (_SPANBERT, (_RATE, _BATCH), [("", 2e-5, 32)]),
        (_SPANBERT, (_EPOCHS,), [("rte", 10.0)]),
        (_SPANBERT, (_EPOCHS, _LENGTH), [(("squad", "squad_v2"), 4.0, 512)])],
    "structbert": [
        ("alibaba/AliceMind StructBERT/README.md", (_RATE, _BATCH, _EPOCHS, _LENGTH),
         [("", 2e-5, 32, 3.0, 128)])],
    "albert": [
        ("google-research/albert optimization.py", ("optimizer",), [("", "bert_adamw")]),
        (_ALBERT, (_RATE, _BATCH, "encoder_dropout", _STEPS, _WARMUP, _LENGTH), [
            ("cola", 1e-5, 16, 0, 5336, 320, 512), ("sts-b", 2e-5, 16, 0, 3598, 214, 512),
            ("sst-2", 1e-5, 32, 0, 20935, 1256, 512), ("mnli", 3e-5, 128, 0, 10000, 1000, 512),
            ("qnli", 1e-5, 32, 0, 33112, 1986, 512), ("qqp", 5e-5, 128, 0.1, 14000, 1000, 512),
            ("rte", 3e-5, 32, 0.1, 800, 200, 512), ("mrpc", 2e-5, 32, 0, 800, 200, 512),
            ("wnli", 2e-5, 16, 0.1, 2000, 250, 512), ("squad", 5e-5, 48, 0, 3649, 365, 384),
            ("squad_v2", 3e-5, 48, 0, 8144, 814, 512), ("race", 2e-5, 32, 0.1, 12000, 1000, 512)]),
        ("google-research/albert race_utils.py", ("max_qa_length",), [("race", 128)]),
        ("google-research/albert squad_utils.py", (_STYLE,), [(("squad", "squad_v2"), "albert")])],
    "electra": [
        (_ELECTRA, (_RATE, _BATCH, _EPOCHS, _SHARE, "layer_decay"),
         [("", 1e-4, 32, 3.0, 0.1, 0.8)]),
        ("google-research/electra model/optimization.py, run_finetuning.py",
         ("layer_decay_top", "loss_reduction", "optimizer", _SCHEDULE),
         [("", 2, "sum", "bert_adamw", "electra")]),
        (_ELECTRA, (_RATE, "layer_decay"), [("large", 5e-5, 0.9)]),
        (_ELECTRA, (_EPOCHS,), [(("rte", "sts-b"), 10.0)]),
        ("google-research/electra finetune/classification/classification_tasks.py",
         ("both_orders",), [(("sts-b", "mrpc"), True)]),
        ("google-research/electra finetune/classification/classification_tasks.py",
         ("label_scale",), [("sts-b", 5.0)]),
        (_ELECTRA, (_EPOCHS, _LENGTH, _STYLE), [(("squad", "squad_v2"), 2.0, 512, "electra")])],
    "ernie": [
        (_ERNIE.format("*"), (_SHARE, _DECAY, "optimizer"), [("", 0.1, 0.0, "ernie_adam")]),
        (_ERNIE.format("*"), (_RATE, _BATCH, _EPOCHS), [
            ("cola", 3e-5, 64, 3.0), ("mnli", 3e-5, 64, 3.0), ("mrpc", 3e-5, 16, 4.0),
            ("qnli", 2e-5, 32, 4.0), ("qqp", 3e-5, 32, 3.0), ("rte", 2e-5, 4, 4.0),
            ("sst-2", 2e-5, 32, 4.0), ("sts-b", 5e-5, 16, 3.0), ("wnli", 2e-5, 8, 4.0)])],
    "deberta-v2": [
        ("microsoft/DeBERTa experiments/glue/mnli.sh, deberta-v3-base and deberta-v3-large",
         (_RATE, _EPOCHS, "classifier_dropout"),
         [("", 1.5e-5, 3.0, 0.1), ("large", 7e-6, 2.0, 0.3)]),
        ("microsoft/DeBERTa experiments/glue/mnli.sh", (_BATCH,), [("", 64)]),
        ("microsoft/DeBERTa experiments/glue/mnli.sh", (_LENGTH,), [("mnli", 256)]),
        ("microsoft/DeBERTa experiments/glue/mrpc.sh", (_BATCH, _EPOCHS, _LENGTH),
         [("mrpc", 32, 6.0, 128)])],
    "mobilebert": [
        ("arXiv:2004.02984, section 4.4: rates to 1e-4, batches of 16, 32, 48, 2 to 10 epochs",
         (_RATE, _BATCH, _EPOCHS), [("", 1e-4, 32, 10.0)]),
        ("google-research mobilebert/README.md; the last rate is 1e-4 of the peak",
         ("optimizer", "end_learning_rate"), [("", "bert_adamw", 1e-8)]),
        ("google-research mobilebert/README.md", (_RATE, _EPOCHS, _LENGTH, "end_learning_rate"),
         [(("squad", "squad_v2"), 4e-5, 5.0, 384, 4e-9)])],
    "openai-gpt": [
        ("Radford et al. 2018, section 4.1: 6.25e-5, 32, 3 epochs, 0.2%, lambda 0.5",
         (_RATE, _BATCH, _EPOCHS, _SHARE, "lm_coef"), [("", 6.25e-5, 32, 3.0, 0.002, 0.5)]),
        ("openai/finetune-transformer-lm train.py, opt.py", ("optimizer", _SCHEDULE, _LENGTH),
         [("", "gpt_adam", "gpt", 512)])],
    "xlnet": [
        (_XLNET, (_RATE, _BATCH), [("", 2e-5, 32)]),
        ("zihangdai/xlnet model_utils.py, scripts", ("optimizer", _DECAY),
         [("", "xlnet_adam", 0.0)]),
        (_XLNET, (_BATCH, _STEPS, _WARMUP), [("mnli", 128, 10_000, 1_000)]),
        ("zihangdai/xlnet README.md, STS-B", (_RATE, _STEPS, _WARMUP),
         [("sts-b", 5e-5, 1_200, 120)]),
        (_XLNET, (_STEPS, _WARMUP, _LENGTH), [("race", 12_000, 1_000, 512)]),
        ("zihangdai/xlnet README.md, IMDB", (_STEPS, _WARMUP, _LENGTH),
         [("imdb", 4_000, 500, 512)]),
        ("zihangdai/xlnet run_race.py", ("max_qa_length", "carry_choices"), [("race", 128, True)]),
        (_XLNET, (_RATE, _BATCH, _STEPS, _WARMUP, _LENGTH, "layer_decay"),
         [(("squad", "squad_v2"), 3e-5, 48, 8_000, 1_000, 512, 0.75)]),
        ("arXiv:1906.08237, table 8: layer l of 24 learns at rate * 0.75^(24 - l); run_squad.py",
         ("layer_decay_top", _STYLE), [(("squad", "squad_v2"), 0, "xlnet")])],
    "xlm-roberta": [
        ("fairseq issue 1538: the commands are mostly same; " + _FAIRSEQ.format("cola"), (
            _RATE, _BATCH, _EPOCHS, _LENGTH, _DECAY, "optimizer", _SCHEDULE, _SHARE,
            "classifier_dropout"),
         [("", 1e-5, 16, 10.0, 512, 0.1, "fairseq_adam", "roberta", 0.06, 0.0)]),
        (_FAIRSEQ.format("{mnli,qnli,qqp,sst_2}"), (_BATCH,),
         [(("mnli", "qnli", "qqp", "sst-2"), 32)]),
        (_FAIRSEQ.format("{rte,sts_b}"), (_RATE,), [(("rte", "sts-b"), 2e-5)]),
        ("fairseq issue 1367: 8 devices with 16 sentences, 0.000005", (_RATE, _BATCH),
         [("xnli", 5e-6, 128)])],
    "mpnet": [
        ("microsoft/MPNet README.glue.md", (
            _RATE, _BATCH, _EPOCHS, _LENGTH, _DECAY, "optimizer", _SCHEDULE),
         [("", 1e-5, 16, 10.0, 512, 0.1, "fairseq_adam", "roberta")]),
        ("microsoft/MPNet README.glue.md: 6 percent; fairseq's pooler_dropout 0",
         (_SHARE, "classifier_dropout"), [("", 0.06, 0.0)]),
        ("microsoft/MPNet README.glue.md", (_BATCH,), [(("mnli", "qnli", "qqp", "sst-2"), 32)]),
        ("microsoft/MPNet README.glue.md", (_RATE,), [(("rte", "sts-b"), 2e-5)]),
        ("microsoft/MPNet README.squad.md: 8 devices with 6 sentences", (
            _RATE, _BATCH, _EPOCHS, _DECAY), [("squad_v2", 2e-5, 48, 4.0, 0.01)])],
    "modernbert": [
        ("AnswerDotAI/ModernBERT generate_eval_config.py: linear_decay_with_warmup, 0.1dur",
         (_SCHEDULE, _SHARE), [("", "roberta", 0.1)]),
        ("src/evals/glue_jobs.py: DecoupledAdamW, betas 0.9 and 0.98, max_sequence_length",
         ("optimizer", _LENGTH), [("", "fairseq_adam", 256)]),
        ("src/evals/glue_jobs.py: weight_decay / lr", (_DECAY,),
         [("", 0.1), ("mnli", 0.02), ("rte", 1.0)]),
        ("src/evals/glue_jobs.py", (_RATE, _BATCH, _EPOCHS), [
            ("cola", 5e-5, 32, 10.0), ("mnli", 5e-5, 64, 2.0), ("mrpc", 8e-5, 32, 10.0),
            ("qnli", 1e-5, 16, 10.0), ("qqp", 3e-5, 16, 5.0), ("rte", 1e-5, 16, 3.0),
            ("sst-2", 3e-5, 16, 3.0), ("sts-b", 3e-5, 32, 10.0)]),
        ("transformers configuration_modernbert.py", ("classifier_dropout",), [("", 0.0)])],
    "sequence_lstm": [
        (_LSTM, (_RATE, _BATCH, "optimizer", _SCHEDULE, "poly_power", _SHARE, _LENGTH),
         [("", 5e-4, 64, "averaged_adam", "exponential", 2.0, 0.0, 400)]),
        (_LSTM, ("head", "classifier_dropout"), [("", "step", 0.0)])]}


def rows(tables: list[Table]) -> dict[str, dict]:
    """The values of tables by task, which must agree where several state one."""
    found: dict[str, dict] = collections.defaultdict(dict)
    for source, columns, lines in tables:
        for tasks, *values in lines:
            for task in (tasks,) if isinstance(tasks, str) else tasks:
                for name, value in zip(columns, values, strict=True):
                    assert found[task].setdefault(name, value) == value, source
    return dict(found)


@pytest.mark.parametrize("kind", {**TABLES, **paper_defaults.DEFAULTS})
def test_relatives_learn_as_their_papers_say(kind):
    assert rows(TABLES[kind]) == paper_defaults.DEFAULTS[kind]


def test_tasks_are_learned_as_the_paper_of_bert_says():
    known = {**TASKS, **{task.name: task for task in SQUAD.values()}}
    assert rows(TASK_TABLES) == {
        name: dataclasses.asdict(task.defaults) for name, task in known.items()}


def test_several_tasks_are_learned_as_by_mt_dnn():
    """arXiv:1901.11504, section 4.2: Adamax, 5e-5, a batch size of 32, at most 5 epochs, 512."""
    assert dataclasses.asdict(mixture.DEFAULTS) == {
        _LENGTH: 512, _BATCH: 32, _RATE: 5e-5, _EPOCHS: 5.0}
    assert MTDNN_DEFAULTS == {"optimizer": "adamax", _RATE: 5e-5, _EPOCHS: 5.0, _BATCH: 32}

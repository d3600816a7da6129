"""Defaults of fine-tuning for the relatives of BERT: the settings of their papers, or of their code
where it differs. BERT's own are those of flags and of tasks (`bert_tf.tasks.task.Defaults`)."""

from collections.abc import Mapping
from typing import Any

from bert_tf.config import PRESETS, EncoderConfig


def _albert(rate: float, batch: int, dropout: float, steps: int, warmup: int,
            length: int = 512) -> dict[str, Any]:
    """A row of table 14 of arXiv:1909.11942."""
    return {"learning_rate": rate, "train_batch_size": batch, "encoder_dropout": dropout,
            "num_train_steps": steps, "num_warmup_steps": warmup, "max_seq_length": length}


# Of GLUE, in fairseq and in MPNet's copy of it.
_FAIRSEQ: dict[str, dict[str, Any]] = {
    "": {"learning_rate": 1e-5, "train_batch_size": 16, "num_train_epochs": 10.0,
         "warmup_proportion": 0.06, "weight_decay": 0.1, "max_seq_length": 512,
         "optimizer": "fairseq_adam", "learning_rate_schedule": "roberta",
         "classifier_dropout": 0.0},
    **{task: {"train_batch_size": 32} for task in ("mnli", "qnli", "qqp", "sst-2")},
    **{task: {"learning_rate": 2e-5} for task in ("rte", "sts-b")}}

# Shared settings are under "", settings of a size or a task, which come before them, under its
# name. google-research/albert classifier_utils.py, race_utils.py, squad_utils.py; fairseq
# examples/roberta/config/finetuning and README.race.md, and arXiv:1907.11692, table 10, which has
# 4 epochs with decay for RACE; google-research/electra configure_finetuning.py;
# facebookresearch/SpanBERT README.md and code/; alibaba/AliceMind StructBERT/README.md.
DEFAULTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "roberta": {
        **_FAIRSEQ,
        "race": {"num_train_epochs": 5.0, "weight_decay": 0.01, "warmup_proportion": 0.0,
                 "learning_rate_schedule": "constant"},
        **{task: {"learning_rate": 1.5e-5, "train_batch_size": 48, "num_train_epochs": 2.0,
                  "weight_decay": 0.01} for task in ("squad", "squad_v2")}},
    # facebookresearch/fairseq issue 1538 (the commands are mostly those of RoBERTa) and issue 1367.
    # For DistilBERT and CamemBERT we know of no published settings: they have BERT's.
    "xlm-roberta": {**_FAIRSEQ, "xnli": {"learning_rate": 5e-6, "train_batch_size": 128}},
    # microsoft/MPNet MPNet/README.glue.md and README.squad.md.
    "mpnet": {
        **_FAIRSEQ,
        "squad_v2": {"learning_rate": 2e-5, "train_batch_size": 48, "num_train_epochs": 4.0,
                     "weight_decay": 0.01}},
    "spanbert": {
        "": {"learning_rate": 2e-5, "train_batch_size": 32},
        "rte": {"num_train_epochs": 10.0},
        **{task: {"num_train_epochs": 4.0, "max_seq_length": 512}
           for task in ("squad", "squad_v2")}},
    "structbert": {
        "": {"learning_rate": 2e-5, "train_batch_size": 32, "num_train_epochs": 3.0,
             "max_seq_length": 128}},
    "albert": {
        "": {"optimizer": "bert_adamw"},
        "cola": _albert(1e-5, 16, 0.0, 5336, 320),
        "sts-b": _albert(2e-5, 16, 0.0, 3598, 214),
        "sst-2": _albert(1e-5, 32, 0.0, 20935, 1256),
        "mnli": _albert(3e-5, 128, 0.0, 10000, 1000),
        "qnli": _albert(1e-5, 32, 0.0, 33112, 1986),
        "qqp": _albert(5e-5, 128, 0.1, 14000, 1000),
        "rte": _albert(3e-5, 32, 0.1, 800, 200),
        "mrpc": _albert(2e-5, 32, 0.0, 800, 200),
        "wnli": _albert(2e-5, 16, 0.1, 2000, 250),
        "race": {**_albert(2e-5, 32, 0.1, 12000, 1000), "max_qa_length": 128},
        "squad": {**_albert(5e-5, 48, 0.0, 3649, 365, 384), "squad_style": "albert"},
        "squad_v2": {**_albert(3e-5, 48, 0.0, 8144, 814), "squad_style": "albert"}},
    "electra": {
        "": {"learning_rate": 1e-4, "train_batch_size": 32, "num_train_epochs": 3.0,
             "warmup_proportion": 0.1, "layer_decay": 0.8, "layer_decay_top": 2,
             "loss_reduction": "sum", "optimizer": "bert_adamw",
             "learning_rate_schedule": "electra"},
        "large": {"learning_rate": 5e-5, "layer_decay": 0.9},
        "rte": {"num_train_epochs": 10.0},
        "sts-b": {"num_train_epochs": 10.0, "label_scale": 5.0, "both_orders": True},
        "mrpc": {"both_orders": True},
        **{task: {"num_train_epochs": 2.0, "max_seq_length": 512, "squad_style": "electra"}
           for task in ("squad", "squad_v2")}},
    # PaddlePaddle/ERNIE script/en_glue/ernie_base.
    "ernie": {
        "": {"optimizer": "ernie_adam", "warmup_proportion": 0.1, "weight_decay": 0.0},
        **{task: {"learning_rate": rate, "train_batch_size": batch, "num_train_epochs": epochs}
           for task, rate, batch, epochs in (
               ("cola", 3e-5, 64, 3.0), ("mnli", 3e-5, 64, 3.0), ("mrpc", 3e-5, 16, 4.0),
               ("qnli", 2e-5, 32, 4.0), ("qqp", 3e-5, 32, 3.0), ("rte", 2e-5, 4, 4.0),
               ("sst-2", 2e-5, 32, 4.0), ("sts-b", 5e-5, 16, 3.0), ("wnli", 2e-5, 8, 4.0))}},
    # arXiv:2004.02984, section 4.4, which tries rates of 1e-5 to 1e-4 and 2 to 10 epochs, and
    # google-research mobilebert/README.md. Without norms the highest rates are the best.
    "mobilebert": {
        "": {"optimizer": "bert_adamw", "learning_rate": 1e-4, "num_train_epochs": 10.0,
             "train_batch_size": 32, "end_learning_rate": 1e-8},
        **{task: {"learning_rate": 4e-5, "num_train_epochs": 5.0, "max_seq_length": 384,
                  "end_learning_rate": 4e-9} for task in ("squad", "squad_v2")}},
    # microsoft/DeBERTa experiments/glue/mnli.sh, of version 3, base and large; mrpc.sh, where all
    # sizes of versions 1 and 2 but one have these epochs.
    "deberta-v2": {
        "": {"learning_rate": 1.5e-5, "train_batch_size": 64, "num_train_epochs": 3.0,
             "classifier_dropout": 0.1},
        "large": {"learning_rate": 7e-6, "num_train_epochs": 2.0, "classifier_dropout": 0.3},
        "mnli": {"max_seq_length": 256},
        "mrpc": {"train_batch_size": 32, "num_train_epochs": 6.0, "max_seq_length": 128}},
    # The paper's and openai/finetune-transformer-lm train.py.
    "openai-gpt": {
        "": {"learning_rate": 6.25e-5, "train_batch_size": 32, "num_train_epochs": 3.0,
             "warmup_proportion": 0.002, "optimizer": "gpt_adam", "max_seq_length": 512,
             "learning_rate_schedule": "gpt", "lm_coef": 0.5}},
    # arXiv:1906.08237, table 8, and zihangdai/xlnet README.md, whose scripts decay no weights.
    "xlnet": {
        "": {"learning_rate": 2e-5, "train_batch_size": 32, "optimizer": "xlnet_adam",
             "weight_decay": 0.0},
        "mnli": {"train_batch_size": 128, "num_train_steps": 10_000, "num_warmup_steps": 1_000},
        "sts-b": {"learning_rate": 5e-5, "num_train_steps": 1_200, "num_warmup_steps": 120},
        "imdb": {"num_train_steps": 4_000, "num_warmup_steps": 500, "max_seq_length": 512},
        "race": {"num_train_steps": 12_000, "num_warmup_steps": 1_000, "max_seq_length": 512,
                 "max_qa_length": 128, "carry_choices": True},
        **{task: {"learning_rate": 3e-5, "train_batch_size": 48, "num_train_steps": 8_000,
                  "num_warmup_steps": 1_000, "layer_decay": 0.75, "layer_decay_top": 0,
                  "max_seq_length": 512, "squad_style": "xlnet"}
           for task in ("squad", "squad_v2")}},
    # AnswerDotAI/ModernBERT src/evals/glue_jobs.py and generate_eval_config.py. Its decay at the
    # peak is a share of the weights; here it is that share divided by the peak.
    "modernbert": {
        "": {"optimizer": "fairseq_adam", "learning_rate_schedule": "roberta",
             "warmup_proportion": 0.1, "weight_decay": 0.1, "max_seq_length": 256,
             "classifier_dropout": 0.0},
        **{task: {"learning_rate": rate, "train_batch_size": batch, "num_train_epochs": epochs}
           for task, rate, batch, epochs in (
               ("cola", 5e-5, 32, 10.0), ("mrpc", 8e-5, 32, 10.0), ("qnli", 1e-5, 16, 10.0),
               ("qqp", 3e-5, 16, 5.0), ("sst-2", 3e-5, 16, 3.0), ("sts-b", 3e-5, 32, 10.0))},
        "mnli": {"learning_rate": 5e-5, "train_batch_size": 64, "num_train_epochs": 2.0,
                 "weight_decay": 0.02},
        "rte": {"learning_rate": 1e-5, "train_batch_size": 16, "num_train_epochs": 3.0,
                "weight_decay": 1.0}},
    # tensorflow/models research/adversarial_text; the rate falls by 0.9998 a step.
    "sequence_lstm": {
        "": {"learning_rate": 5e-4, "train_batch_size": 64, "optimizer": "averaged_adam",
             "learning_rate_schedule": "exponential", "poly_power": 2.0, "warmup_proportion": 0.0,
             "max_seq_length": 400, "head": "step", "classifier_dropout": 0.0}},
}


def find(config: EncoderConfig, task: str) -> dict[str, Any]:
    """Returns the defaults for a model and the name of its task, "" for the user's own files."""
    rows = DEFAULTS.get(config.model_type, {})
    if config.model_type == "xlnet" and config.is_causal:      # Transformer-XL
        rows = {}
    shape = config.num_hidden_layers, config.hidden_size
    size = next((name for name, known in PRESETS.items() if known == shape), "")
    settings: dict[str, Any] = {}
    for name in dict.fromkeys(("", size, task)):
        settings |= rows.get(name, {})
    if "max_seq_length" in settings:
        settings["max_seq_length"] = min(settings["max_seq_length"], config.max_position_embeddings)
    return settings

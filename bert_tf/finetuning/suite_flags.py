"""The flags of a suite's run."""

import dataclasses

from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.suites import SUITES
from bert_tf.training.settings import POLICIES, STRATEGIES


@dataclasses.dataclass
class SuiteFlags:
    """The suite, the model, and what is tried."""

    suite: str = option(REQUIRED, "The suite of tasks.", choices=tuple(SUITES))
    data_dir: str = option(REQUIRED, "Folder with a subfolder of official files for each task; or "
                           "a data set such as tfds:glue or hf://datasets/nyu-mll/glue.")
    output_dir: str = option(REQUIRED, "Folder for all runs, the table and the archive.")
    init_checkpoint: str = option("", "The initial checkpoint, of any format.")
    bert_config_file: str = option(
        "", "The bert_config.json of the model; default: the file beside --init_checkpoint.")
    vocab_file: str = option(
        "", "The vocabulary of the tokenizer; default: the file beside --init_checkpoint.")
    do_lower_case: bool | None = option(None, "Lower-case the text; default: as in pre-training.")
    tasks: list[str] = option(
        [], "Some of the suite's tasks, or for xnli some of zero-shot, translate-train and "
        "translate-test. Default: all.")
    train_majority: list[str] = option(
        [], "Train a model for these tasks, such as WNLI; otherwise the suite predicts their most "
        "frequent label for all examples.")
    rank_pronouns: bool = option(
        False, "In WNLI and WSC, rank the candidates for a pronoun with the masked LM of "
        "--init_checkpoint, as in RoBERTa's paper.")
    intermediate: bool = option(
        False, "Start GLUE's RTE, MRPC and STS-B from the best model of MNLI, as in RoBERTa's "
        "paper. SuperGLUE's BoolQ, CB and RTE start from the best model of MNLI, COPA from the "
        "best model of SWAG, as BERT++. SQuAD starts from the model of TriviaQA and its head, as "
        "in BERT's paper.")
    num_trials: int = option(
        1, "Number of runs of each point of the grid, with consecutive "
        "seeds from --random_seed.", least=1)
    random_seed: int = option(12345, "The first seed.", least=0)
    grid_learning_rate: list[str] = option(
        [], "Learning rates to try; default: as in the model's paper.", items=float, above=0)
    grid_train_batch_size: list[str] = option(
        [], "Batch sizes to try; default: as in the model's paper.", items=int, above=0)
    grid_num_train_epochs: list[str] = option(
        [], "Numbers of epochs to try; default: as in the model's paper.", items=float, above=0)
    dry_run: bool = option(False, "Print the plan, with an estimate of the time, and stop.")
    # Settings of every run; None: the default of the task and the model.
    max_seq_length: int | None = option(None, "Maximum tokens of all sequences. Default: each "
                                              "task's default.",
                                        least=4)
    num_train_steps: int | None = option(
        None, "Steps of every run, instead of epochs.", least=1, rare=True)
    warmup_proportion: float | None = option(
        None, "Share of the steps in which the learning rate rises.", least=0, most=1)
    weight_decay: float | None = option(None, "Weight decay.", least=0)
    eval_batch_size: int | None = option(
        None, "Examples per step of evaluation and prediction.", least=1)
    early_stopping: int | None = option(
        None, "Stop after this many evaluations without a better headline metric.", least=0)
    save_checkpoints_steps: int | None = option(
        None, "Steps between checkpoints, from which a stopped run resumes.", least=1)
    gradient_accumulation_steps: int | None = option(
        None, "Number of parts in which each device processes its share of a batch.", least=1)
    dtype: str | None = option(None, "Type of the computation.", choices=tuple(POLICIES))
    distribution_strategy: str | None = option(
        None, "Where to train.",
        choices=tuple(name for name in STRATEGIES if name != "multi_worker"))
    num_workers: int | None = option(
        None, "Processes that make records; default: one for each core.", least=0)

"""The flags of `create_pretraining_data` for recipes with records of their own kind: rows that
continue from batch to batch, streams, and inputs with targets."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.models.t5.corruption import CONVERTERS, OBJECTIVES
from bert_tf.models.xlnet import records as xlnet_records
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags

_MOST_LENGTH = 1 << 20      # of a target


@dataclasses.dataclass
class RowFlags:
    """Rows that are read side by side."""

    bsz_per_host: int = option(
        32, "Number of records in a batch. Row r of each batch continues row r of the batch "
        "before, so --train_batch_size must be the same number.", least=1)


@dataclasses.dataclass
class StreamFlags(RowFlags):
    """Streams of text (XLNet)."""

    num_core_per_host: int = option(
        1, "Number of devices that share the rows. With --bi_data half of the rows of each device "
        "run backward.", least=1)
    reuse_len: int = option(
        0, "Tokens at the beginning of a sequence that the network keeps for the next batch. 0: "
        "half of --max_seq_length, the only length allowed.", least=0)
    bi_data: bool = option(True, "Half of the rows hold the text backward.")
    mask_alpha: int = option(
        6, "A run of n predicted tokens has a context of n * mask_alpha / mask_beta tokens, which "
        "includes the run.", least=1)
    mask_beta: int = option(1, "See --mask_alpha.", least=1)
    max_gram: int = option(
        5, "Maximum length of a run of predicted tokens; 1 predicts single tokens.", least=1)
    whole_grams: bool = option(
        False, "Runs consist of whole words. The original and its released models count sub-words.")
    use_eod: bool = option(True, "A blank line becomes the token <eod>; if false, it is left out.")
    from_raw_text: bool = option(True, "The input is text; if false, ids separated by blanks.")
    num_task: int = option(
        1, "Number of parts into which the input files are divided, each with its own records. "
        "--task=i makes the records of part i alone.", least=1)
    pass_id: int = option(
        0, "Number of the first pass over the text; --dupe_factor is the number of passes.",
        least=0)

    def shape(self, job) -> xlnet_records.Shape:
        size, rows = job.max_seq_length, self.bsz_per_host
        if size % 2 or size < 10:
            raise InputError(f"--max_seq_length is {size}; it must be even, and at least 10.")
        reuse = self.reuse_len or size // 2
        if reuse != size // 2:
            raise InputError(f"--reuse_len is {reuse}, but it must be half of --max_seq_length, "
                             f"{size // 2}.")
        if rows % (self.num_core_per_host * (1 + self.bi_data)):
            halves = " with --bi_data, in two halves each" if self.bi_data else ""
            raise InputError(
                f"--bsz_per_host={rows} can't be divided among --num_core_per_host="
                f"{self.num_core_per_host}{halves}; "
                f"give a multiple of {self.num_core_per_host * (1 + self.bi_data)}.")
        if self.mask_alpha < self.mask_beta:
            raise InputError(f"--mask_alpha={self.mask_alpha} is less than "
                             f"--mask_beta={self.mask_beta}: a masked token would not fit into its "
                             "context; raise --mask_alpha.")
        if job.max_predictions_per_seq > size:
            raise InputError(f"--max_predictions_per_seq={job.max_predictions_per_seq} is more "
                             f"than --max_seq_length={size}.")
        own = {name: getattr(self, name) for name in (
            "num_core_per_host", "bi_data", "mask_alpha", "mask_beta", "max_gram", "whole_grams")}
        return xlnet_records.Shape(size, reuse, job.max_predictions_per_seq or None, rows, **own)

    def parts(self, job) -> list[tuple[int, int]]:
        tasks = list(range(self.num_task))
        if job.task:
            if job.task not in map(str, tasks):
                raise InputError(f"--task={job.task} must be below --num_task={self.num_task}.")
            tasks = [int(job.task)]
        return [(task, self.pass_id + turn) for turn in range(job.dupe_factor) for task in tasks]


@dataclasses.dataclass
class DenoisingFlags:
    """Inputs and targets (T5); a flag that is not given has the objective's value."""

    objective: str | None = option(
        None, "How a text becomes an input and a target. span_corruption (the default): spans are "
        "masked in the input, and are the target. Four objectives mask single tokens: iid_u_u by "
        "unique sentinels, iid_d_d by dropping them, iid_m_f by one sentinel for each (MASS), "
        "iid_r10s90_f by a random token or a sentinel (BERT); for the last two the target is the "
        "whole text. all_permute: the input is the text in another order. prefix_lm: the input is "
        "its beginning. lm, full_lm, random_length, fixed_length: there is no input.",
        choices=OBJECTIVES)
    noise_density: float | None = option(
        None, "Share of the tokens that are noise. Default: 0.15.", above=0, most=1)
    mean_noise_span_length: float | None = option(
        None, "Mean length of a span. Default: 3.", least=1)
    max_target_length: int | None = option(
        None, "Length of a target, its final token included. Default: the length of the longest "
        "target that the objective makes from an input of --max_seq_length tokens.", least=2,
        most=_MOST_LENGTH)
    feature_converter: str | None = option(
        None, "What rows hold. encoder_decoder: an input for the encoder and a target for the "
        "decoder. lm: a target, for a decoder alone. prefix_lm: an input and its target, for a "
        "decoder alone.", choices=CONVERTERS)
    pack: bool | None = option(None, "Put as many pairs of input and target into a row as fit.")

    def resolve(self, recipe: Recipe, job: PretrainingDataFlags) -> tuple[Recipe, int]:
        denoising = OBJECTIVES.get(self.objective, recipe.denoising)
        denoising = denoising.vary(self.noise_density, self.mean_noise_span_length)
        converter = self.feature_converter or denoising.converter
        if denoising.has_inputs == (converter == "lm"):
            inputs, other = "no inputs", "lm"
            if denoising.has_inputs:
                inputs, other = "inputs", "encoder_decoder or prefix_lm"
            raise InputError(f"--feature_converter={converter}: this --objective has {inputs}; "
                             f"give {other}.")
        denoising = dataclasses.replace(denoising, converter=converter, pack=bool(self.pack))
        length = self.max_target_length or denoising.target_length(job.max_seq_length)
        if not 2 <= length <= _MOST_LENGTH:
            raise InputError(f"--max_target_length is {length}, which is not between 2 and "
                             f"{_MOST_LENGTH}.")
        return recipe.vary(denoising=denoising), length

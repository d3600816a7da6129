"""The flags of `create_pretraining_data` for recipes whose records are inputs and targets."""

import dataclasses

from bert_tf.errors import InputError
from bert_tf.flags import option
from bert_tf.models.t5.corruption import CONVERTERS, OBJECTIVES
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags

_MOST_LENGTH = 1 << 20


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
        denoising = OBJECTIVES[self.objective] if self.objective else recipe.denoising
        denoising = denoising.vary(self.noise_density, self.mean_noise_span_length)
        converter = self.feature_converter or denoising.converter
        if denoising.has_inputs == (converter == "lm"):
            other = "lm" if converter != "lm" else "encoder_decoder or prefix_lm"
            raise InputError(f"--feature_converter={converter}: this --objective has "
                             f"{'inputs' if denoising.has_inputs else 'no inputs'}; give {other}.")
        denoising = dataclasses.replace(denoising, converter=converter, pack=bool(self.pack))
        length = self.max_target_length or denoising.target_length(job.max_seq_length)
        if not 2 <= length <= _MOST_LENGTH:
            raise InputError(f"--max_target_length is {length}, which is not between 2 and "
                             f"{_MOST_LENGTH}.")
        return recipe.vary(denoising=denoising), length

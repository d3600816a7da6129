"""Settings of pre-training recurrent language models."""

import dataclasses

from bert_tf.flags import check, option


@dataclasses.dataclass(frozen=True)
class SampledSettings:
    """Sampled softmax of recurrent language models."""

    n_negative_samples_batch: int | None = option(
        None, "Number of wrong tokens that are drawn for each batch in training; 0: the softmax "
        "over the whole vocabulary. Default: as in the recipe.", least=0)

    __post_init__ = check

    @property
    def term_options(self) -> dict[str, int]:
        count = self.n_negative_samples_batch
        return {} if count is None else {"n_negative_samples_batch": count}

"""The records of recipes with inputs and targets: shards for each piece of the text."""

from typing import Any

from bert_tf.models.t5.records import create_pairs
from data_prep.text_job import TextJob

_SEEDS = 1 << 62        # seeds of data sets are below this number


class TargetJob(TextJob):
    """Inputs and targets."""

    def own_options(self) -> dict[str, Any]:
        return {"max_target_length": self.target_length}

    def _make(self, documents, seed):
        pairs = create_pairs(documents, self.tokenizer.vocabulary, seed % _SEEDS,
                             self.recipe.denoising, self.job.max_seq_length, self.target_length,
                             self.job.dupe_factor)
        return pairs, pairs.counts()

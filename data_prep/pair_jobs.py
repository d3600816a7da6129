"""The records of recipes whose texts are pairs: labelled ones, and inputs with targets."""

from typing import Any

from bert_tf.data.text import corpus
from bert_tf.errors import InputError
from bert_tf.models.ernie import segments as labelled_pairs
from bert_tf.models.t5.records import create_pairs
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags
from data_prep.text_job import TextJob

_SEEDS = 1 << 62        # seeds of data sets are below this number


class LabelledJob(TextJob):
    """Pairs with labels, one per line."""

    boundary = corpus.LINE_END
    has_sentences = False

    @classmethod
    def prepare(cls, job: PretrainingDataFlags, recipe: Recipe) -> Recipe:
        job.dupe_factor = 1     # nothing is drawn
        labels = labelled_pairs.find_labels(job.input_file)      # also finds wrong lines
        job.labels = job.labels or list(recipe.tasks[recipe.task].labels) or labels
        if len(set(job.labels)) < max(2, len(job.labels)):
            raise InputError(f"--labels={','.join(job.labels)}: a task has two labels or more, "
                             "each named once.")
        return recipe.vary({"num_labels": len(job.labels)})

    def _documents(self, lines, tokenizer, marker, names):
        lines, labels = labelled_pairs.as_documents(lines, self.job.labels, names)
        documents = corpus.tokenize_documents(lines, tokenizer, True, marker)
        labelled_pairs.give_labels(documents, labels, names)
        return lines, documents


class TargetJob(TextJob):
    """Inputs and targets."""

    def own_options(self) -> dict[str, Any]:
        return {"max_target_length": self.target_length}

    def _make(self, documents, seed):
        pairs = create_pairs(documents, self.tokenizer.vocabulary, seed % _SEEDS,
                             self.recipe.denoising, self.job.max_seq_length, self.target_length,
                             self.job.dupe_factor)
        return pairs, pairs.counts()

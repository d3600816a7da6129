"""The records of a task of labelled pairs: shards for each piece of the text."""

from bert_tf.data.text import corpus, places
from bert_tf.errors import InputError
from bert_tf.models.ernie import labelled_pairs
from bert_tf.recipes import Recipe
from data_prep.pretraining_flags import PretrainingDataFlags
from data_prep.text_job import TextJob


class LabelledJob(TextJob):
    """Pairs with labels, one per line."""

    boundary = places.LINE_END
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

"""Pronouns whose candidates a masked language model ranks (arXiv:1905.06290; arXiv:1907.11692,
section 5.1).

Shapes: N examples, S sequence, P tokens of a candidate.
"""

import numpy as np

from bert_tf.data.records.features import FINETUNING, KNOWN, MASKS
from bert_tf.errors import InputError
from bert_tf.tasks import pronouns
from bert_tf.tasks.kinds.candidates import group_starts
from bert_tf.tasks.kinds.encoding import label_id, with_label_ids
from bert_tf.tasks.kinds.labelled import LabelledKind, rounded
from bert_tf.tasks.kinds.sentence import MultipleChoice
from bert_tf.tasks.kinds.submissions import write_whole
from bert_tf.tokenization.packing import pack_parts

_TOKENS = 24        # of a candidate; longer ones lose their last ones
_PAIR = 2


class PronounRanking(MultipleChoice):
    """Whether a pronoun refers to a phrase: whether a masked language model finds no other
    candidate in the text likelier in its place. An example is a pair of the phrase and another
    candidate; its texts are the text before the pronoun, the text after it, and both candidates.
    Its `document` is the number of the line, its label 0 where the phrase is right. Other lines do
    not teach, as in the original."""

    name, title = "pronoun_ranking", "pronouns whose candidates are ranked"
    features = (*FINETUNING["multiple_choice"],
                *(KNOWN[feature.name].on(_PAIR * _TOKENS) for feature in MASKS))
    own_metrics: tuple = ()
    needs_choices = labels_are_classes = labels_may_be_far = smooths = False
    has_labels = is_grouped = keeps_head = True
    texts = (4, 4, "a tuple of four: what stands before and after a pronoun, and two candidates")

    def _head(self, task, options):
        return "candidate_lm", {"name": "masked_lm"}

    def check_options(self, options, max_seq_length, tokenizer):
        if tokenizer.vocabulary.mask_id is None:
            raise InputError("a masked LM must rank the candidates, but the vocabulary has no mask "
                             "token; name another --init_checkpoint.")
        if max_seq_length < 2 * _TOKENS:
            raise InputError(f"--max_seq_length is {max_seq_length}; it must be at least "
                             f"{2 * _TOKENS}, so that a candidate and its context fit.")

    def gather(self, task, rows, path, omissions):
        """Yields a row for each other candidate; without any, one row with the phrase twice."""
        for number, (line, texts, raw, _) in enumerate(rows):
            if len(texts) == 2:
                schema = pronouns.schema_of(*texts)
            else:
                schema = pronouns.Schema(texts[3], texts[5], texts[1])
            for other in pronouns.candidates(schema) or [schema.query]:
                yield line, [*schema, other], raw, number

    def label(self, task, ids, texts, raw, where):
        return 0 if raw is None else 1 - label_id(raw, ids, where)

    def counted(self, label):
        return (1 - label,)

    def label_limit(self, described):
        return _PAIR

    def num_choices(self, example):
        return _PAIR

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        """Makes a row of two sequences. Each has, in place of the pronoun, a mask for every token
        of a candidate. A longer text keeps the words around the pronoun."""
        vocabulary = tokenizer.vocabulary
        layout, texts = vocabulary.layout, []
        for example in examples:
            before, after, *both = example.texts
            blank = " " * before[-1:].isspace()
            begin = str if before else tokenizer.at_start
            texts += [tokenizer.at_start(before.rstrip()), after,
                      *(begin(blank + candidate) for candidate in both)]
        ids, lengths = tokenizer.encode_parts(texts)
        parts = iter(np.split(ids, np.cumsum(lengths)[:-1]))
        sequences, is_cut = [], np.zeros(len(examples), bool)
        masks = {name: np.zeros((len(examples) * _PAIR, _TOKENS), np.int64) for name in (
            feature.name for feature in MASKS)}
        for number in range(len(examples)):
            before, after = next(parts), next(parts)
            for place in range(_PAIR):
                candidate = next(parts)
                tokens = candidate[:_TOKENS]
                room = layout.room(max_seq_length, False) - len(tokens)
                right = min(len(after), max(room // 2, room - len(before)))
                left = before[max(len(before) - (room - right), 0):]
                is_cut[number] |= len(tokens) < len(candidate) or (
                    len(left) + right < len(before) + len(after))
                sequences.append(np.concatenate(
                    [left, np.full(len(tokens), vocabulary.mask_id), after[:right]]))
                row, used = _PAIR * number + place, slice(len(tokens))
                masks["masked_lm_positions"][row, used] = (
                    layout.before + len(left) + np.arange(len(tokens)))
                masks["masked_lm_ids"][row, used] = tokens
                masks["masked_lm_weights"][row, used] = 1
        packed = pack_parts([(sequence, ()) for sequence in sequences], max_seq_length, vocabulary)
        features = {name: rows.reshape(len(examples), -1)
                    for name, rows in (packed | masks).items()}
        features["masked_lm_weights"] = features["masked_lm_weights"].astype(np.float32)
        return with_label_ids(features, examples), int(is_cut.sum())

    def decode(self, task, answers, examples, features):
        """Returns whether the phrase of each example's line is at least as likely as all of its
        candidates: 0 or 1, int [N]."""
        logits, starts = answers["logits"], group_starts(examples)
        is_right = np.logical_and.reduceat(logits[:, 0] >= logits[:, 1], starts)
        return is_right.astype(np.int64)[np.cumsum(np.isin(np.arange(len(examples)), starts)) - 1]

    def targets(self, task, examples):
        return 1 - super().targets(task, examples)

    def compared(self, task, examples, predicted):
        starts = group_starts(examples)
        return self.targets(task, examples)[starts], predicted[starts]

    def score(self, task, path, examples, predicted):
        """Returns the scores of lines."""
        starts = group_starts(examples)
        lines = [examples[start] for start in starts]
        return super().score(task, path, lines, predicted[starts])

    is_degenerate = LabelledKind.is_degenerate

    def against_ties(self, task, answers, examples, predicted):
        """The answers as they are: the original takes a phrase that is as likely as the others."""
        return predicted

    def describe(self, task, example, prediction, probabilities):
        return {"line": example.document, "label": task.labels[prediction],
                "candidates": example.texts[2:], "probabilities": rounded(probabilities)}

    def write_more(self, folder, source, examples, predicted, answers, is_test):
        return write_whole(folder, source, predicted[group_starts(examples)]) if is_test else []

    def submission(self, task, predictions):
        return [task.labels[index] for index in predictions]

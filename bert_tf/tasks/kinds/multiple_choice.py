"""Which of several texts continues or answers another, as in SWAG."""

from bert_tf.data.features import FINETUNING
from bert_tf.tasks.kinds.labelled import LabelledKind, encode_pairs, rounded, with_label_ids


class MultipleChoice(LabelledKind):
    """The number of the right choice, from 0. An example's texts are the context and the choices;
    its record holds a sequence for each choice.
    """

    name, title, script = "multiple_choice", "multiple choice", "run_multiple_choice"
    features = FINETUNING["multiple_choice"]
    own_metrics = ("accuracy",)
    needs_choices = True
    texts = (3, None, "a tuple of the context and two choices or more")

    def label(self, task, ids, texts, raw, where):
        return super().label(task, {str(index): index for index in range(len(texts) - 1)}, texts,
                             raw, where)

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        pairs = [(e.texts[0], choice) for e in examples for choice in e.texts[1:]]
        features, is_cut = encode_pairs(pairs, tokenizer, max_seq_length)
        features = {name: rows.reshape(len(examples), -1) for name, rows in features.items()}
        return (with_label_ids(features, examples),
                int(is_cut.reshape(len(examples), -1).any(1).sum()))

    def num_choices(self, example):
        return len(example.texts) - 1

    def label_limit(self, described):
        return described["num_choices"]

    def is_degenerate(self, predictions, labels):
        """False: a number means another text in every example."""
        return False

    def describe(self, task, example, prediction, probabilities):
        return {"choice": int(prediction), "probabilities": rounded(probabilities)}

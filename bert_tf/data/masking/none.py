"""No token is predicted."""

from bert_tf.data.masking import base


class Masking(base.Masking):
    """The masking of inputs and targets, and of tasks without masks."""

    always_predicts = False

    def static_masks(self, documents, vocabulary, stream, options, room):
        return None

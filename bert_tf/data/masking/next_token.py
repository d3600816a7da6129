"""Every token but the first is predicted from the tokens before it; none is hidden."""

from bert_tf.data.masking import base


class Masking(base.Masking):
    """The masking of language models from left to right."""

    hides = False

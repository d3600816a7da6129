"""The sizes of the bidirectional LSTM that learns from BERT."""

import dataclasses
from typing import ClassVar

from bert_tf.config.sizes import LSTM, Sizes


@dataclasses.dataclass(frozen=True)
class BiLstmConfig(Sizes):
    """Sizes of the student of arXiv:1903.12136; the defaults are its authors' (castorini/d-bert).

    Attributes:
        lstm_size: U, the cells of each direction.
        hidden_size: H, width of the layer after the last states of both directions.
        pairs: whether two texts are read separately, by the same weights, and compared.
    """

    whole_numbers: ClassVar = {"vocab_size": 10_000_000, "embedding_size": 65_536,
                               "lstm_size": 65_536, "hidden_size": 65_536}
    fractions: ClassVar = {"initializer_range": 10}
    choices: ClassVar = {"model_type": ("bilstm",), "pairs": (True, False)}
    distinctive_keys: ClassVar = ("pairs",)
    unseen_keys: ClassVar = ("pairs",)
    unused_keys: ClassVar = ()
    has_bert_presets: ClassVar = False
    dropout_keys: ClassVar = ()
    type_vocab_size, num_hidden_layers, pooler_type = 2, 1, "first_token_transform"

    vocab_size: int
    embedding_size: int = 300
    lstm_size: int = 150
    hidden_size: int = 200
    pairs: bool = False
    initializer_range: float = 0.02     # of heads
    model_type: str = "bilstm"

    @property
    def read_width(self) -> int:
        """The width of the vector read from one text or two."""
        return 2 * self.lstm_size * (4 if self.pairs else 1)

    def weights(self) -> dict[str, str]:
        return {"embeddings/word_embeddings": "VE", "pooler/dense": "dense FH",
                **{f"encoder/{way}/{name}": LSTM[name] for way in ("forward", "backward")
                   for name in ("kernel", "bias")}}

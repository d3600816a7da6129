"""Sizes of recurrent networks: ELMo's language models, the LSTM of semi-supervised sequence
learning, and the bidirectional LSTM that learns from BERT."""

import dataclasses
import operator
from typing import ClassVar

from bert_tf.config.sizes import LSTM, Sizes, fraction, one_of, switch, whole
from bert_tf.errors import InputError
from bert_tf.spelling import MOST_CHARACTERS, spelling_names

_MOST_FILTERS, _MOST_LAYERS = 64, 64


@dataclasses.dataclass(frozen=True)
class ElmoConfig(Sizes):
    """Sizes of ELMo's two language models (arXiv:1802.05365).

    Names are from allenai/bilm-tf's options.json, the defaults are the released model's.

    Attributes:
        vocab_size: rows of the softmax, with <S>, </S> and <UNK>.
        projection_dim: width of an LSTM's output and of a token; H is twice that.
        dim: width of an LSTM's cells.
        n_layers: LSTMs in each direction.
        cell_clip, proj_clip: bounds of cells and projections; 0 for no clipping.
        use_skip_connections: whether all LSTMs but the first add their input to their output.
        filters: list of [width, number] of the convolutions over a word's characters; [] for an
            embedding of words in place of characters.
        char_embedding_dim: width of a character.
        n_highway: highway layers after the convolutions.
        activation: activation of the convolutions, "relu" or "tanh".
        max_characters_per_token: characters of a word, its marks of begin and end included.
        hidden_dropout_prob: dropout of an LSTM's input, and of the last one's output.
    """

    has_bert_presets: ClassVar = False
    dropout_keys: ClassVar = ("hidden_dropout_prob",)
    distinctive_keys: ClassVar = ("projection_dim", "filters")
    unseen_keys: ClassVar = ("cell_clip", "proj_clip", "use_skip_connections", "activation")

    vocab_size: int = whole(793_471, "tokens")
    projection_dim: int = whole(512)
    dim: int = whole(4096)
    n_layers: int = whole(2, _MOST_LAYERS)
    cell_clip: float = fraction(3.0, below=1e6)
    proj_clip: float = fraction(3.0, below=1e6)
    use_skip_connections: bool = switch(True)
    filters: tuple = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    char_embedding_dim: int = whole(16)
    n_highway: int = whole(2, _MOST_LAYERS, least=0)
    activation: str = one_of("relu", ("relu", "tanh"))
    max_characters_per_token: int = whole(50, MOST_CHARACTERS)
    hidden_dropout_prob: float = fraction(0.1)
    initializer_range: float = fraction(0.02, below=10)     # of heads
    model_type: str = one_of("elmo", ("elmo",))

    def __post_init__(self):
        super().__post_init__()
        try:
            filters = tuple((operator.index(width), operator.index(count))
                            for width, count in self.filters)
        except (TypeError, ValueError):
            filters = ((0, 0),)
        if len(filters) > _MOST_FILTERS or any(
                not 1 <= width <= self.max_characters_per_token or not 1 <= count <= 65_536
                for width, count in filters):
            raise InputError("filters must be a list of pairs [width, number of filters], with "
                             f"widths of up to max_characters_per_token, not {self.filters!r}.")
        object.__setattr__(self, "filters", filters)

    # H is of both ways together.
    hidden_size = embedding_width = property(lambda self: 2 * self.projection_dim)
    num_hidden_layers = property(lambda self: self.n_layers)
    num_filters = property(lambda self: sum(count for _, count in self.filters))
    # Whether an LSTM's output is narrower than its cells.
    projects = property(lambda self: self.projection_dim < self.dim)

    @property
    def further_features(self) -> tuple[str, ...]:
        return spelling_names(self.max_characters_per_token) if self.filters else ()

    def check_reads_texts(self, source: str) -> None:
        """Does nothing: ELMo's tokenizer makes all features."""

    def weights(self) -> dict[str, str]:
        if self.filters:
            shapes = {"embeddings/char_embeddings": "QB"}
            for i in range(len(self.filters)):
                shapes |= {f"embeddings/convolution_{i}/kernel": "RBW",
                           f"embeddings/convolution_{i}/bias": "W"}
            shapes |= {f"embeddings/highway_{i}_{gate}": "dense FW" for i in range(self.n_highway)
                       for gate in ("carry", "transform")}
            if self.num_filters != self.projection_dim:
                shapes["embeddings/projection"] = "dense FW"
        else:
            shapes = {"embeddings/word_embeddings": "VW"}
        parts = [name for name in LSTM if self.projects or name != "projection_kernel"]
        return shapes | {f"encoder/{way}_{i}/{name}": LSTM[name] for way in ("forward", "backward")
                         for i in range(self.n_layers) for name in parts}


@dataclasses.dataclass(frozen=True)
class SequenceLstmConfig(Sizes):
    """Sizes of the LSTM of arXiv:1511.01432; the defaults are its authors' (tensorflow/models,
    research/adversarial_text).

    Attributes:
        vocab_size: V, </s> included.
        hidden_size: H, the LSTM's cells.
        num_hidden_layers: number of stacked LSTMs.
        normalize_embeddings: whether embeddings are normalised at every call, weighted by the
            frequency of their words.
        hidden_dropout_prob: dropout of the embeddings, with one mask for all steps of a sequence.
        word_dropout_prob: probability that a word's embedding becomes 0.
    """

    has_bert_presets: ClassVar = False
    dropout_keys: ClassVar = ("hidden_dropout_prob",)
    distinctive_keys: ClassVar = ("normalize_embeddings",)
    unseen_keys: ClassVar = ("normalize_embeddings",)

    vocab_size: int = whole(most="tokens")
    embedding_size: int = whole(256)
    hidden_size: int = whole(512)
    num_hidden_layers: int = whole(1, _MOST_LAYERS)
    normalize_embeddings: bool = switch(True)
    hidden_dropout_prob: float = fraction(0.5)
    word_dropout_prob: float = fraction(0.0)
    initializer_range: float = fraction(0.02, below=10)     # of heads
    directionality: str = one_of("left_to_right", ("left_to_right",))
    model_type: str = one_of("sequence_lstm", ("sequence_lstm",))

    def weights(self) -> dict[str, str]:
        return {"embeddings/word_embeddings": "VE", "embeddings/token_counts": "V",
                **{f"encoder/lstm_{i}/{name}": LSTM[name] for i in range(self.num_hidden_layers)
                   for name in ("kernel", "bias")}}


@dataclasses.dataclass(frozen=True)
class BiLstmConfig(Sizes):
    """Sizes of the student of arXiv:1903.12136; the defaults are its authors' (castorini/d-bert).

    Attributes:
        lstm_size: U, the cells of each direction.
        hidden_size: H, width of the layer after the last states of both directions.
        pairs: whether two texts are read separately, by the same weights, and compared.
    """

    distinctive_keys: ClassVar = ("pairs",)
    unseen_keys: ClassVar = ("pairs",)
    has_bert_presets: ClassVar = False
    dropout_keys: ClassVar = ()
    type_vocab_size, num_hidden_layers, pooler_type = 2, 1, "first_token_transform"

    vocab_size: int = whole(most="tokens")
    embedding_size: int = whole(300)
    lstm_size: int = whole(150)
    hidden_size: int = whole(200)
    pairs: bool = switch(False)
    initializer_range: float = fraction(0.02, below=10)     # of heads
    model_type: str = one_of("bilstm", ("bilstm",))

    # The width of the vector read from one text or two.
    read_width = property(lambda self: 2 * self.lstm_size * (4 if self.pairs else 1))

    def weights(self) -> dict[str, str]:
        return {"embeddings/word_embeddings": "VE", "pooler/dense": "dense FH",
                **{f"encoder/{way}/{name}": LSTM[name] for way in ("forward", "backward")
                   for name in ("kernel", "bias")}}

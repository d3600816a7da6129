"""Functions of layers, without weights: products, masks, poolings, and the activations by the names
of configurations.

Shapes: B batch, S sequence, H hidden, E width of the embeddings, V vocabulary.
"""

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from keras import ops

# A tensor of the backend, or a value that `keras.ops` accepts for one, such as `np.ndarray`.
Tensor: TypeAlias = Any

_C, _K = math.sqrt(2 / math.pi), 0.044715
# Above this width the backward pass computes tanh and erf again: the wider a layer, the less of its
# time they take, and the more memory.
_NARROW = 1024


def argmax(x: Tensor) -> Tensor:
    """Returns the index of the largest element along the last axis, the first of equal ones, int32.

    `keras.ops.argmax` also looks for negative zeros, which takes TensorFlow five times as long.
    """
    return ops.top_k(x, 1, sorted=False)[1][..., 0]


def custom_gradient(function: Callable) -> Callable:
    """`keras.ops.custom_gradient` of a function whose gradient takes `upstream` alone. Keras gives
    it by its name, after the inputs, on PyTorch."""
    @ops.custom_gradient
    @functools.wraps(function)
    def decorated(*inputs):
        value, gradient = function(*inputs)
        return value, lambda *args, upstream=None: gradient(
            args[0] if upstream is None else upstream)

    return decorated


def plus(x: Tensor, addend: Tensor | None) -> Tensor:
    """Returns `x`, float, plus an addend in its type; `x` alone if this is None."""
    return x if addend is None else x + ops.cast(addend, x.dtype)


@custom_gradient
def _product(x, table):
    def gradient(upstream):
        # The automatic gradient computes the table's gradient as [E, V] and transposes a copy.
        rows, vectors = (ops.reshape(y, (-1, y.shape[-1])) for y in (upstream, x))
        return ops.matmul(upstream, table), ops.matmul(ops.transpose(rows), vectors)

    return ops.matmul(x, ops.transpose(table)), gradient


@custom_gradient
def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Returns x, [B, I], plus a bias, [I], whose gradient is summed in float32.

    TensorFlow's own sums bfloat16 one by one on a CPU: with 256 equal rows it stops (BiasAddGrad,
    TensorFlow 2.20 and 2.21). It was 30% off for 4,096 tokens.
    """
    def gradient(upstream):
        ones = ops.ones((1, ops.shape(upstream)[0]), upstream.dtype)
        return upstream, ops.matmul(ones, upstream)[0]

    return ops.add(x, bias), gradient


def vocabulary_logits(x: Tensor, table: Tensor) -> Tensor:
    """Returns the products of vectors, float [..., E], and the vectors of all tokens, float [V, E],
    as float32 [..., V]; they are computed in the type of `x`."""
    return ops.cast(_product(x, ops.convert_to_tensor(ops.cast(table, x.dtype))), "float32")


def causal_bias(length: Tensor) -> Tensor:
    """Returns an addend of attention scores that hides later positions, float32 [1, 1, S, S]:
    -10000 above the diagonal, else 0."""
    place = ops.arange(length)
    later = ops.cast(place[None, None, None, :] > place[None, None, :, None], "float32")
    return later * -10000.0


def last_token(vectors: Tensor, input_mask: Tensor | None = None) -> Tensor:
    """Returns the vector of each text's last token, [B, H], from vectors [B, S, H]. Without a mask,
    all are tokens."""
    if input_mask is None:
        return vectors[:, -1]
    place = ops.arange(ops.shape(vectors)[1], dtype="int32")            # [S]
    last = ops.max(ops.cast(input_mask, "int32") * place, axis=1, keepdims=True)        # [B, 1]
    is_last = ops.expand_dims(ops.equal(place, last), 2)                # [B, S, 1]
    return ops.sum(ops.where(is_last, vectors, ops.zeros_like(vectors)), axis=1)


def pool(vectors: Tensor, input_mask: Tensor, pooling: str, normalize: bool = False) -> Tensor:
    """Returns one vector for each text from the vectors of its tokens: float32 [B, H].

    Args:
        vectors: float [B, S, H], such as the output of a layer.
        input_mask: integer [B, S], 1 for tokens and 0 for padding; a text has at least one token.
        pooling: "cls", the first token's vector; "last", the last one's; "mean" or "max" over all
            tokens, [CLS] and [SEP] too, as in sentence-transformers; "none", the tokens' vectors,
            [B, S, H].
        normalize: whether to scale each vector to length 1.
    """
    vectors = ops.cast(vectors, "float32")
    is_token = ops.cast(input_mask, "bool")[:, :, None]                 # [B, S, 1]
    if pooling == "cls":
        vectors = vectors[:, 0]
    elif pooling == "last":
        vectors = last_token(vectors, input_mask)
    elif pooling == "mean":
        count = ops.sum(ops.cast(is_token, "float32"), 1)               # [B, 1]
        vectors = ops.sum(ops.where(is_token, vectors, 0.0), 1) / count
    elif pooling == "max":
        vectors = ops.max(ops.where(is_token, vectors, -float("inf")), 1)
    return ops.normalize(vectors, epsilon=1e-12) if normalize else vectors


def _gelu(twice_phi_and_slope: Callable) -> Callable:
    """Returns the function x * phi(x) (arXiv:1606.08415), from a function that returns 2 phi(x) and
    a function that returns it again with its slope."""
    # The derivative is written out: it is a little faster, and has no sum of three gradients, whose
    # order TensorFlow may choose. The backward pass computes cheap values again, in another form,
    # since TensorFlow keeps a value that two equal operations compute.
    @custom_gradient
    def gelu(x):
        twice_phi, slope_at = twice_phi_and_slope(x)

        def gradient(upstream):
            again, slope = slope_at()
            return (0.5 * upstream) * (again + x * slope)

        # LiteRT recognizes the exact form's product in this order as one operation.
        return (0.5 * x) * twice_phi, gradient

    return gelu


def _tanh_form(x):
    """google-research/bert's approximation: phi(x) = (1 + tanh(c (x + k x^3))) / 2."""
    def tanh_from(square):
        return ops.tanh(x * (_C + (_C * _K) * square))

    def again():
        square = ops.square(-x)
        value = tanh_from(square) if _is_wide(x) else tanh
        return value - -1.0, (1.0 - value * value) * (_C + (3 * _C * _K) * square)

    tanh = tanh_from(ops.square(x))
    return 1.0 + tanh, again


def _erf_form(x):
    """The cumulative function of the normal distribution."""
    def again():
        value = 1.0 - ops.erf(x * -math.sqrt(0.5)) if _is_wide(x) else erf - -1.0
        return value, ops.exp(-0.5 * x * x) * math.sqrt(2 / math.pi)

    erf = ops.erf(x * math.sqrt(0.5))
    return 1.0 + erf, again


def _is_wide(x):
    return isinstance(x.shape[-1], int) and x.shape[-1] > _NARROW


# By the names of `config.ACTIVATIONS`.
ACTIVATIONS = {
    "gelu": _gelu(_tanh_form),
    "gelu_erf": _gelu(_erf_form),
    "relu": ops.relu, "relu6": ops.relu6, "tanh": ops.tanh, "silu": ops.silu,
    "linear": lambda x: x}
# The same functions in forms that TensorFlow computes together with the product and the bias before
# them. The last bits differ, so training has the forms above.
_IN_PREDICTION = {ACTIVATIONS["gelu"]: functools.partial(ops.gelu, approximate=True)}
_is_training_step = contextvars.ContextVar("is_training_step", default=False)


@contextlib.contextmanager
def training_forms() -> Iterator[None]:
    """Within this context, layers have the activations of training, also frozen networks and
    teachers, which a training step calls without `training`."""
    token = _is_training_step.set(True)
    try:
        yield
    finally:
        _is_training_step.reset(token)


def is_prediction(training: bool | None) -> bool:
    """Returns whether a call of a layer needs no gradient. `training` is None outside of a model's
    call, such as when the backward pass computes a layer again: None means training."""
    return training is False and not _is_training_step.get()


def form_of(activation: Any, training: bool | None) -> Any:
    """Returns the form of an activation for a call of a layer."""
    return _IN_PREDICTION.get(activation, activation) if is_prediction(training) else activation

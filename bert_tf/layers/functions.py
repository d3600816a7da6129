"""Functions of layers, without weights: products, masks, poolings, activations by the names of
configurations, and dropout. Random draws are pure functions of a seed, so that a resumed run
repeats them.

Shapes: B batch, S sequence, H hidden, E width of the embeddings, V vocabulary.
"""

import contextlib
import contextvars
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import keras
import lazy_loader
import numpy as np
from keras import ops

tf = lazy_loader.load("tensorflow")     # only where it is Keras's backend

# A tensor of the backend, or a value that `keras.ops` accepts for one, such as `np.ndarray`.
Tensor: TypeAlias = Any

# The seeds of this many replicas and parts of one step differ in the low bits of their first
# number.
PARTS_OF_A_STEP = 1 << 7
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


def slice_axis(x: Tensor, axis: int, start: Any, size: Any) -> Tensor:
    """Returns `size` elements of an axis, counted from the first, from `start` on. TensorFlow's
    gradient of an index takes several times as long; JAX's slice must know the size."""
    if keras.config.backend() != "tensorflow":
        return x[(slice(None),) * axis + (slice(start, start + size),)]
    starts, sizes = [0] * len(x.shape), list(ops.shape(x))
    starts[axis], sizes[axis] = start, size
    return ops.slice(x, starts, sizes)


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


def cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    """Returns -log softmax(logits) at the labels, whole numbers [...], from float32 [..., V]:
    float32 [...]. A label that is no class is an error, or NaN where XLA or a GPU computes.

    TensorFlow's own takes 3 to 4 times the CPU time where its operations are deterministic: it
    sums the gradient over a table of zeros as large as the logits (TensorFlow 2.20 and 2.21).
    """
    if keras.config.backend() != "tensorflow":
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
    labels, classes = ops.cast(labels, "int64"), ops.shape(logits)[-1]
    is_class = ops.logical_and(labels >= 0, labels < ops.cast(classes, "int64"))

    @ops.custom_gradient
    def function(logits):
        probs = tf.nn.softmax(logits)      # Keras warns where there is one class
        of_label = tf.gather(logits, labels, batch_dims=len(labels.shape))
        # The largest probability is 1 / sum(exp(logits - the largest logit)).
        losses = ops.max(logits, -1) - of_label - ops.log(ops.max(probs, -1))

        def gradient(upstream):
            is_label = ops.one_hot(labels, classes, dtype=probs.dtype)
            return (probs - is_label) * ops.where(is_class, upstream, np.nan)[..., None]

        return ops.where(is_class, losses, np.nan), gradient

    return function(logits)


def causal_bias(length: Tensor) -> Tensor:
    """Returns an addend of attention scores that hides later positions, float32 [1, 1, S, S]:
    -10000 above the diagonal, else 0."""
    place = ops.arange(length)
    later = ops.cast(place[None, None, None, :] > place[None, None, :, None], "float32")
    return later * -10000.0


def places_of_tokens(input_mask: Tensor) -> Tensor:
    """Returns how many tokens are before each token in its row, int32 [B, S], from a mask [B, S];
    for padding, how many places are (facebookresearch/fairseq, `make_positions`)."""
    mask = ops.cast(input_mask, "int32")
    return ops.where(mask > 0, ops.cumsum(mask, axis=1) - 1,
                     ops.arange(ops.shape(mask)[1], dtype="int32"))


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


class _Given(keras.random.SeedGenerator):
    """Passes a seed that is a tensor to Keras's random functions."""

    def __init__(self, seed):
        # The base class would create a variable, which a compiled function can't do.
        if keras.config.backend() == "torch":
            # Keras adds both numbers there, so that [1, 2] and [2, 1] would draw alike.
            seed = ops.cast(seed, "int64") * np.array([0x9E3779B1, 1])
        self._seed = seed

    def next(self, ordered=True):
        return self._seed


def split_seed(seed: Tensor | None, count: int) -> list[Tensor] | list[None]:
    """Returns a list of `count` seeds, integer [2], that are independent of each other and of other
    seeds' parts. If `seed` is None, the list has `count` times None."""
    if seed is None:
        return [None] * count
    dtype = "uint32" if keras.config.backend() == "jax" else "int32"
    seeds = keras.random.randint((count, 2), 0, 2**31 - 1, dtype, _Given(ops.cast(seed, dtype)))
    return list(ops.unstack(seeds, count))


def seed_of_pass(seed: Tensor | None, training: bool,
                 generator: keras.random.SeedGenerator) -> Tensor | None:
    """Returns the dropout seed of one pass of a model: the given one, integer [2], or the
    generator's next; None outside training."""
    if not training:
        return None
    return generator.next() if seed is None else seed


def shared_seed(seed: Tensor) -> Tensor:
    """The common seed of all replicas and parts of a step, integer [2], from any one's seed."""
    first = ops.floor_divide(seed[0], PARTS_OF_A_STEP) * PARTS_OF_A_STEP
    return ops.stack([first, seed[1]])


def _mixed(x):
    """Integers, uint32, half of whose bits change with one bit of x: the end of MurmurHash3."""
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(13))) * np.uint32(0xC2B2AE35)
    return ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))


def mixed_seed(seed: Tensor) -> Tensor:
    """Returns the seed of `keys_of_rows`, uint32 [2], from a seed, integer [2]."""
    seed = ops.cast(seed, "uint32")
    return _mixed(ops.bitwise_xor(seed, ops.flip(_mixed(seed + np.uint32(0x9E3779B9)))))


def keys_of_rows(rows: Tensor, seed: Sequence[Tensor]) -> Tensor:
    """Returns the keys of `bits_in_rows` for the numbers of some rows, uint32, and the two numbers
    of `mixed_seed`."""
    return _mixed(_mixed(ops.bitwise_xor(rows, seed[0])) + seed[1])


def bits_in_rows(keys: Tensor, columns: Tensor) -> Tensor:
    """The random bits of some columns of some rows, uint32; arguments, uint32, are broadcast."""
    # The keys are mixed, so one product with them is enough for a number's high bits.
    x = ops.bitwise_xor(keys, columns * np.uint32(0x9E3779B1))
    x = ops.bitwise_xor(x, ops.right_shift(x, np.uint32(16)))
    return x * ops.bitwise_or(keys, np.uint32(1))


def least_kept(rate: float) -> np.uint32:
    """Returns the least of `bits_in_rows` whose number in `uniform` is at least `rate`."""
    return np.uint32(math.ceil(np.float32(rate) * 2.0**24) << 8)


def uniform(shape: Sequence, seed: Tensor) -> Tensor:
    """Returns numbers in [0, 1), float32 of `shape`, a pure function of the seed, integer [2]."""
    if keras.config.backend() == "jax":
        # JAX's own draws take 2.6 times as long on a GPU, where they were a tenth of a step.
        *rows, columns = shape or (1,)
        keys = keys_of_rows(ops.arange(math.prod(rows), dtype="uint32"), mixed_seed(seed))
        bits = bits_in_rows(keys[:, None], ops.arange(columns, dtype="uint32"))
        numbers = ops.cast(ops.right_shift(bits, np.uint32(8)), "float32") * 2.0**-24
        return ops.reshape(numbers, shape)
    return keras.random.uniform(shape, seed=_Given(seed), dtype="float32")


def at_least(rate: float, shape: Sequence, seed: Tensor) -> Tensor:
    """Returns whether numbers in [0, 1) are at least `rate`: bool of `shape`, a pure function of
    the seed, integer [2].

    On TensorFlow they have 16 bits, two from each number of its generator, whose draws take most of
    the time of dropout. Elsewhere they are those of `uniform`.
    """
    if keras.config.backend() != "tensorflow":
        return uniform(shape, seed) >= rate
    count = tf.reduce_prod(shape)
    draws = tf.random.stateless_uniform([(count + 1) // 2], seed, None, None, tf.uint32)
    numbers = tf.reshape(tf.bitcast(draws, tf.uint16), [-1])[:count]
    return tf.reshape(numbers, shape) >= tf.constant(min(round(rate * 2**16), 2**16 - 1), tf.uint16)


def softmax_and_dropout(scores: Tensor, rate: float, seed: Tensor | None, dtype: Any
                        ) -> tuple[Tensor, Tensor]:
    """Softmax(scores) over the last axis, and the same after `dropout`, both in `dtype`.

    On JAX, both together keep one number per probability for the backward pass, in `dtype`:
    negative where the probability was dropped. JAX by itself keeps two, one of them in float32.
    """
    probs = ops.cast(ops.softmax(scores), dtype)
    if keras.config.backend() != "jax" or seed is None or not rate:
        return probs, dropout(probs, rate, seed)
    return probs, lean_softmax_and_dropout(scores, rate, seed, dtype)


def attend_with_dropout(scores: Tensor, rate: float, seed: Tensor | None, value: Tensor
                        ) -> tuple[Tensor, Tensor]:
    """Returns softmax(scores), [..., I, J] in the type of `value`, and the product of its `dropout`
    with `value`, [..., J, O]. On TensorFlow the backward pass computes that dropout again."""
    if keras.config.backend() != "tensorflow" or seed is None or not rate:
        probs, dropped = softmax_and_dropout(scores, rate, seed, value.dtype)
        return probs, ops.matmul(dropped, value)
    probs = ops.cast(ops.softmax(scores), value.dtype)
    stays = _stays(probs, rate, ops.shape(probs), seed)

    @ops.custom_gradient
    def function(probs, value):
        def gradient(upstream):
            factors = _factors(stays, rate, probs.dtype, upstream)
            return (tf.matmul(upstream, value, adjoint_b=True) * factors,
                    tf.matmul(probs * factors, upstream, adjoint_a=True))

        return ops.matmul(probs * _factors(stays, rate, probs.dtype), value), gradient

    return probs, function(probs, value)


def _stays(x, rate, shape, seed):
    """`at_least`, drawn when `x` is there: TensorFlow would draw for all layers before the first
    (151 MB for eight rows of Base)."""
    with tf.control_dependencies([x]):
        return at_least(rate, shape, seed)


def _factors(stays, rate, dtype, upstream=None):
    """The factors of dropout from `at_least`. The backward pass computes them again when its
    `upstream` is there, from a byte for each, by another operation: TensorFlow keeps what two equal
    ones compute."""
    if upstream is not None:
        with tf.control_dependencies([upstream]):
            stays = ops.cast(stays, "uint8")
    return ops.cast(stays, dtype) * (1 / (1 - rate))


def lean_softmax_and_dropout(scores: Tensor, rate: float, seed: Tensor, dtype: Any) -> Tensor:
    """dropout(softmax(scores)), with a gradient in less memory: see `softmax_and_dropout`."""
    scale = 1 / (1 - rate)

    @custom_gradient
    def function(scores, seed):
        probs = ops.cast(ops.softmax(scores), dtype)
        signed = ops.where(at_least(rate, ops.shape(scores), seed), probs, -probs)

        def gradient(upstream):
            upstream = ops.where(signed > 0, upstream * scale, 0)
            probs = ops.cast(ops.abs(signed), scores.dtype)
            slope = probs * ops.cast(upstream, scores.dtype)
            return slope - probs * ops.sum(slope, axis=-1, keepdims=True), None

        return ops.maximum(signed, 0) * scale, gradient

    # JAX refuses a seed that the function does not get as an argument, where it computes a layer
    # again for the backward pass.
    return function(scores, seed)


def dropout(x: Tensor, rate: float, seed: Tensor | None, shared: int | None = None) -> Tensor:
    """Sets elements of `x` to zero at `rate`, from 0 to below 1, and scales up the others.

    The mask is a pure function of the seed, integer [2]. So a resumed run draws the masks of an
    uninterrupted one, each replica draws its own, and XLA can compile the step. All elements along
    the axis `shared` have one mask.
    """
    if seed is None or not rate:
        return x
    shape = list(ops.shape(x))
    if shared is not None:
        shape[shared] = 1
    # In bfloat16, keras.random.dropout draws from 128 numbers only, and takes twice the time.
    if keras.config.backend() != "tensorflow":
        return x * _factors(at_least(rate, shape, seed), rate, x.dtype)
    stays = _stays(x, rate, shape, seed)

    @ops.custom_gradient
    def function(x):
        return x * _factors(stays, rate, x.dtype), lambda upstream: (
            upstream * _factors(stays, rate, x.dtype, upstream))

    return function(x)

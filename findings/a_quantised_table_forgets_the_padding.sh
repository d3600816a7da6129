#!/usr/bin/env bash
# Keras 3.15.1: quantised to int8 or int4, a ReversibleEmbedding with mask_zero=True forgets the padding.
#
# The layer is an embedding that also turns vectors back into scores of tokens, for a masked language model or a
# decoder. With mask_zero=True it hides padding from the layers that follow: attention, recurrent layers, mean pooling
# and the loss. It writes this mask on its result in call, and its compute_mask gives None, since the way back has no
# mask. A quantised layer runs quantized_call in place of call, which writes no mask. So model.quantize("int8") leaves
# the words nearly as they were, and from then on all padding is read as text. Here 27 places of padding move the
# vector of a text by less than a millionth before, and by twice its size after. One batch of texts of
# equal length, the usual check of a quantised model, shows nothing. Embedding, which is quantised by the same code,
# keeps its mask. Saved and loaded models do it as well. All backends share this code.
#
# Give attention and pooling the mask by hand, or keep the table in float with filters=. Seen in November 2026 with
# Python 3.11. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    keras==3.15.1 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6
cd "$folder"
KERAS_BACKEND=jax venv/bin/python - <<'PYTHON' 2>log || { cat log; exit 1; }
import keras
import numpy as np
from keras import layers

print("keras", keras.__version__)
rng = np.random.default_rng(0)
TEXTS = rng.integers(1, 100, (8, 5))
PADDED = np.pad(TEXTS, ((0, 0), (0, 27)))


def encoder(kind):
    """A model from token ids to the mean of attention's outputs over a text."""
    keras.utils.set_random_seed(0)
    ids = keras.Input((None,), dtype="int32")
    words = kind(100, 32, mask_zero=True, name="words")(ids)
    return keras.Model(ids, layers.GlobalAveragePooling1D()(layers.MultiHeadAttention(2, 16)(words, words)))


def off(outputs, right):
    return float(np.abs(outputs - right).mean() / np.abs(right).mean())


def padding_counts(model):
    return off(model(PADDED).__array__(), model(TEXTS).__array__())


for kind in (layers.Embedding, layers.ReversibleEmbedding):
    for mode in ("int8", "int4"):
        model = encoder(kind)
        right = model(TEXTS).__array__()
        before = padding_counts(model)
        model.quantize(mode, filters="words")
        after = padding_counts(model)
        rounded = off(model(TEXTS).__array__(), right)
        model.save("model.keras")
        loaded = padding_counts(keras.saving.load_model("model.keras"))
        print(f"{kind.__name__}, {mode}: rounding moves a text's vector by {rounded:.2%}, padding by {before:.6%} "
              f"before, by {after:.6%} after, by {loaded:.6%} when loaded from a file")
        assert before < 1e-6 and rounded < 0.2
        if kind is layers.Embedding:
            assert max(after, loaded) < 1e-6
        else:
            assert min(after, loaded) > 0.3, "otherwise than seen"
PYTHON
echo "as seen"

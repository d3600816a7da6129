#!/usr/bin/env bash
# Keras 3.15.1: LoRA on a ReversibleEmbedding in int8 or int4 changes the way in only, and the saved file has it on both
# ways, so the loaded model is not the one that was trained.
#
# A ReversibleEmbedding with tied weights looks tokens up and turns vectors back into scores with one table. enable_lora
# puts two small trained matrices beside the table, which a quantised table needs to be trained at all. In float both
# ways read the table with them. In int8 and int4 the way in adds them, and the way back reads the bare table, so
# the adapter never learns the scores. Saving adds them to the table and rounds it anew, as documented, and after
# loading both ways have them. The scores of a language model are then off by what the adapter learned for the way
# in. Here training in int4 brings the loss from 4.7 to 0.0, and the saved and loaded model has more than 20, far worse
# than one that guesses. In float it has 0.0. Checkpoints are chosen by the model before it is saved. No warning
# comes. All backends share this code; an open change is to add the adapter to the way back (keras-team/keras pull
# request 23630).
#
# Train the adapters of other layers, or an Embedding and a Dense. Seen in November 2026 with Python 3.11. The script
# fails if this changes.
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
VOCABULARY, SIZE, LENGTH = 100, 32, 8
rng = np.random.default_rng(0)
TEXTS = rng.integers(0, VOCABULARY, (256, LENGTH))
ANSWERS = rng.permutation(VOCABULARY)[TEXTS]   # each token is to be answered by another one
VECTORS = rng.standard_normal((4, SIZE)).astype("float32")


def scores(words):
    return np.asarray(words(VECTORS, reverse=True))


for mode in (None, "int8", "int4"):
    keras.utils.set_random_seed(0)
    words = layers.ReversibleEmbedding(VOCABULARY, SIZE, embeddings_initializer=keras.initializers.RandomNormal(0, 0.3),
                                       name="words")
    ids = keras.Input((LENGTH,), dtype="int32")
    model = keras.Model(ids, words(layers.Dense(SIZE)(words(ids)), reverse=True))
    if mode:
        model.quantize(mode, filters="words")
    words.enable_lora(16)
    model.compile(keras.optimizers.Adam(0.02), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    before, without = model.evaluate(TEXTS, ANSWERS, verbose=0), scores(words)
    model.fit(TEXTS, ANSWERS, epochs=60, batch_size=64, verbose=0)
    trained, bare = model.evaluate(TEXTS, ANSWERS, verbose=0), scores(words)
    model.save("model.keras")
    loaded = keras.saving.load_model("model.keras")
    after = loaded.evaluate(TEXTS, ANSWERS, verbose=0)
    print(f"{mode or 'float'}: loss {before:.2f} before the training, {trained:.2f} after it, {after:.2f} when loaded; "
          f"the scores of other vectors changed by training: {not np.array_equal(bare, without)}")
    if mode is None:
        assert trained < before / 2 and abs(after - trained) < 1e-3 and not np.array_equal(bare, without)
    else:
        assert after > trained + 1 and np.array_equal(bare, without), "otherwise than seen"
    if mode == "int4":
        assert trained < before / 2 and after > 2 * before, "otherwise than seen"
PYTHON
echo "as seen"

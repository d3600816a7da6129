#!/usr/bin/env bash
# tensorflow-recommenders 0.7.7: with a model that is always right FactorizedTopK reports a top-1 accuracy of 0.6, as
# the true text competes with itself and loses by rounding.
#
# FactorizedTopK is the metric of the retrieval task: how often the true candidate is among the best k of a corpus. By
# default it compares scores. The score of the true candidate is computed as a sum over products (reduce_sum), and those
# of the corpus, in which it is as well, by a product of matrices. The two round differently. So the corpus' copy of the
# true candidate is a little better than the true candidate in about four of ten cases, and then the true one is
# second. Here each query finds its own text by a wide margin, so all accuracies are 1 by definition. Reported are 0.54
# to 0.63 for k = 1, and 1.0 from k = 2 on. With a weaker model those who are at rank k by right fall to k + 1 in as
# many cases. The share changes with the width of the vectors and with the machine, so that models that differ in
# nothing else seem better or worse. The documentation recommends scores for candidates that are not in the index, ids
# for approximate scores, and calls Streaming and BruteForce exact. Its tutorials have the texts in the corpus and pass
# no ids. No warning comes.
#
# Pass true_candidate_ids (candidate_ids of tasks.Retrieval), with a corpus of ids and vectors. Seen in December 2026
# with Python 3.11, on a CPU. The script fails if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip() { "$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$@"; }
pip tensorflow-cpu==2.20.0 numpy==2.4.6
pip --no-deps tensorflow-recommenders==0.7.7 tf-keras==2.20.1
export TF_USE_LEGACY_KERAS=1 TF_CPP_MIN_LOG_LEVEL=3
"$folder/venv/bin/python" - 2>"$folder/log" <<'PYTHON' || { cat "$folder/log"; exit 1; }
from importlib.metadata import version

import numpy as np
import tensorflow as tf
from tensorflow_recommenders.layers.factorized_top_k import BruteForce, Streaming
from tensorflow_recommenders.metrics import FactorizedTopK

print("tensorflow-recommenders", version("tensorflow-recommenders"), "tensorflow", tf.__version__)
TEXTS, KS = 1000, (1, 2, 5)
rng = np.random.default_rng(0)


def accuracies(metric, queries, texts, **ids):
    for start in range(0, TEXTS, 100):
        part = slice(start, start + 100)
        metric.update_state(queries[part], texts[part], **{name: value[part] for name, value in ids.items()})
    return [float(value) for value in metric.result()]


for width in (32, 128, 384, 768):
    texts = rng.normal(size=(TEXTS, width)).astype(np.float32)
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    queries = texts + 0.02 * rng.normal(size=texts.shape).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    scores = np.sort(queries.astype(np.float64) @ texts.astype(np.float64).T, axis=1)
    margin = (scores[:, -1] - scores[:, -2]).min()
    right = ((queries.astype(np.float64) @ texts.astype(np.float64).T).argmax(1) == np.arange(TEXTS)).mean()
    assert right == 1 and margin > 0.05, "the model is not always right"

    rows = tf.data.Dataset.from_tensor_slices(texts).batch(128)
    streaming = accuracies(FactorizedTopK(rows, KS), queries, texts)
    brute = accuracies(FactorizedTopK(BruteForce(k=5).index(texts), KS), queries, texts)
    ids = np.arange(TEXTS)
    named = tf.data.Dataset.from_tensor_slices((ids, texts)).batch(128)
    by_id = accuracies(FactorizedTopK(Streaming(k=5).index_from_dataset(named), KS), queries, texts,
                       true_candidate_ids=ids)
    print(f"width {width}: each query finds its text, by {margin:.2f} or more. Top-1, 2, 5: a corpus {streaming},"
          f" BruteForce {brute}, by ids {by_id}")
    assert by_id == [1, 1, 1]
    for seen in (streaming, brute):
        assert 0.4 < seen[0] < 0.85 and seen[1:] == [1, 1]
PYTHON
echo "as seen"

"""When Keras learns of the classes that a saved model may name."""

import os
import subprocess
import sys

import pytest

import bert_tf

# A small substitute, so that no backend is loaded.
KERAS = """
registry = {}
class saving:
    get_custom_objects = staticmethod(lambda: registry)
"""


@pytest.mark.parametrize("code", [
    "import keras, bert_tf",
    "import bert_tf, keras",
    "import bert_tf, importlib.util; importlib.util.find_spec('keras'); import keras",
    "import bert_tf, lazy_loader; keras = lazy_loader.load('keras')",
], ids=["keras first", "bert_tf first", "keras only looked for", "keras lazily"])
def test_keras_knows_the_classes_of_the_package(code, tmp_path):
    (tmp_path / "keras.py").write_text(KERAS)
    folders = os.pathsep.join([str(tmp_path), os.path.dirname(os.path.dirname(bert_tf.__file__))])
    done = subprocess.run([sys.executable, "-c", f"{code}\nprint(*keras.registry)"],
                          env={**os.environ, "PYTHONPATH": folders},
                          capture_output=True, text=True, check=True)
    assert {"bert_tf>Learner", "bert_tf>MaskedLM", "bert_tf>BertEncoder"} <= set(
        done.stdout.split())

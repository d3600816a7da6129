"""When Keras learns of the classes that a saved model may name."""

import importlib
import os
import subprocess
import sys

import keras
import pytest

import bert_tf
from bert_tf.training.optimizers import OPTIMIZERS, make_optimizer

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


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizer_of_a_compiled_model_is_found_wherever_its_class_was(name):
    optimizer = make_optimizer(name, 1e-3)
    saved = keras.saving.serialize_keras_object(optimizer)
    saved["module"] = "bert_tf.training.a_module_of_an_earlier_version"
    again = keras.saving.deserialize_keras_object(saved)
    assert type(again) is type(optimizer) and again.get_config() == optimizer.get_config()


def test_every_optimizer_of_the_table_can_be_found_before_its_class_is_imported():
    homes = bert_tf._homes(bert_tf._CLASSES | bert_tf._SAVED)
    for row in OPTIMIZERS.values():
        module, name = row.kind.split(".")
        assert homes[name] == f"bert_tf.training.optimizers.{module}"


def test_registered_classes_are_where_they_are_said_to_be():
    for name, module in {**bert_tf._HOMES, **bert_tf._homes(bert_tf._SAVED)}.items():
        assert hasattr(importlib.import_module(module), name)

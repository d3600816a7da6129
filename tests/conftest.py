"""Fixtures of all tests, and the order in which they run."""

import gc
import importlib.util
import os
import subprocess
import sys

import pytest

from tests.goldens import Material
from tests.processes import HOLD, PLAIN, UNOPTIMIZED

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# The models are tiny: more threads would only wait for each other. Programs that tests start
# inherit this; 0 is TensorFlow's own choice.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "1")
if not PLAIN:       # what `UNOPTIMIZED` is for graphs, for those that XLA compiles
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 "
                                       "--xla_llvm_disable_expensive_passes=true")

if importlib.util.find_spec("triton"):      # it can't be loaded after TensorFlow
    importlib.import_module("triton")

# The folders whose files take longest.
_LONG = ("run_scripts", "training", "finetuning", "export", "tokenization", "checkpoints")


def pytest_configure(config):
    """Imports TensorFlow and sets it up, but not in the process that only hands out the tests."""
    global tf
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput"):
        return
    import tensorflow as tf
    # Two devices to train on, which must be made before TensorFlow does anything.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2)
    if not PLAIN:
        from tests.quick import save_time
        save_time()
        tf.config.optimizer.set_experimental_options(UNOPTIMIZED)
        # Tracing makes millions of objects that live on: they are looked through once, while young.
        gc.freeze()
        gc.set_threshold(200_000, 10_000, 1000)


def pytest_sessionfinish():
    """Leaves all objects to the end of the process, which needs not look through them."""
    gc.freeze()


def pytest_collection_modifyitems(config, items):
    """Sorts the files so that the longest come first and workers end at about one time."""
    folders = [str(config.rootpath / "tests" / name) for name in _LONG]

    def rank(item):
        folder = next((index for index, folder in enumerate(folders)
                       if str(item.path).startswith(folder)), len(folders))
        return folder, -item.path.stat().st_size, str(item.path)
    items.sort(key=rank)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Seeds each test, fixtures included: what passes once passes always."""
    import keras
    keras.utils.set_random_seed(1)


@pytest.fixture(scope="session")
def mirrored():
    """The one MirroredStrategy of the session: a second one would break the collectives."""
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


@pytest.fixture
def eagerly():
    """Without tracing, which takes longer than a few small steps."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture(scope="module")
def all_eagerly():
    """`eagerly` for a whole file, also for the fixtures that it makes once."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def as_in_programs():
    """With graphs that are traced and optimized as users have them."""
    is_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(False)
    tf.config.optimizer.set_experimental_options(dict.fromkeys(UNOPTIMIZED, False))
    yield
    tf.config.optimizer.set_experimental_options(UNOPTIMIZED)
    tf.config.run_functions_eagerly(is_eager)


@pytest.fixture
def as_program(monkeypatch):
    """Function of a job, which then is as a program that was given --x=1 has it."""
    from bert_tf.flags import program

    def fill(job):
        monkeypatch.setattr(program, "_filled", [job])
        monkeypatch.setattr(program, "_given", ["--x=1"])
        return job
    return fill


@pytest.fixture(scope="session")
def test_data():
    """The folder of real material and of the originals' outputs; see tests/goldens.py."""
    return Material()


@pytest.fixture
def hold():
    """function(path): a process that holds the lock of a path until its stdin ends."""
    started = []

    def start(path):
        started.append(subprocess.Popen([sys.executable, "-c", HOLD, str(path)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert started[-1].stdout.readline() == "held\n"
        return started[-1]
    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def written(monkeypatch):
    """The names of files, in the order in which they appear whole."""
    replace, names = os.replace, []
    monkeypatch.setattr(os, "replace", lambda source, target: (
        names.append(os.path.basename(target)), replace(source, target)))
    return names

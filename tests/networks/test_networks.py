"""Every configuration has a network, and every network the attributes that its users rely on."""

import importlib
import inspect
import pkgutil

import keras
import pytest

from bert_tf import config, networks
from bert_tf.config.encoder_sizes import EncoderSizes
from bert_tf.data.records.features import KNOWN


def classes_of(package, base):
    """The names of the subclasses of `base` that a package defines."""
    modules = [package, *(importlib.import_module(f"{package.__name__}.{module.name}")
                          for module in pkgutil.iter_modules(package.__path__))]
    return {name for module in modules for name, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, base) and value is not base
            and value.__module__ == module.__name__}


def test_no_network_and_no_configuration_is_missing_from_the_tables():
    assert classes_of(networks, keras.Model) == set(networks.NETWORKS.values())
    configs = {cls.__name__ for cls in config.CONFIGS.values()}
    known = classes_of(config, config.Sizes) - {EncoderSizes.__name__}
    assert known == configs == set(networks.NETWORKS)


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_a_network_is_built_from_its_configuration(name):
    sizes = {size: 2 if "layers" in size else 8 for size in getattr(config, name).whole_numbers}
    network = networks.build(getattr(config, name)(**sizes), name="mine", dtype="bfloat16")
    assert type(network).__name__ == networks.NETWORKS[name]
    assert network.name == "mine" and network.dtype_policy.name == "bfloat16"
    assert set(network.reads) <= set(KNOWN)
    assert isinstance(network.embedding_table, keras.Variable)
    assert isinstance(network.seed_generator, keras.random.SeedGenerator)
    same = type(network).from_config(network.get_config())
    assert same.config == network.config

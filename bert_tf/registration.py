"""Tells Keras of our classes once both are imported, without importing Keras.

`keras.models.load_model` finds a class of another library only if it is in Keras's registry. With
this, `import bert_tf` is all that a saved model asks for, in whatever order Keras is imported, and
costs nothing where Keras is never imported.
"""

import importlib
import importlib.abc
import importlib.util
import sys


class _Later:
    """Stands in Keras's registry for a class that is imported when a saved model names it."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def from_config(self, config):
        return getattr(importlib.import_module(self.module), self.name).from_config(config)


class _WhenKerasIsImported(importlib.abc.MetaPathFinder):
    """Runs `action` after Keras's own import."""

    def __init__(self, action):
        self.action = action

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "keras":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec("keras")
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                self.action()

            spec.loader.exec_module = exec_module
        return spec


def register_later(homes):
    """Registers `homes`, a dict of modules by class name, now or when Keras is imported."""

    def register():
        registry = importlib.import_module("keras").saving.get_custom_objects()
        for name, module in homes.items():
            registry.setdefault(f"bert_tf>{name}", _Later(module, name))

    if "keras" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _WhenKerasIsImported(register))

"""Registers our classes with Keras once both are imported, without importing Keras: so `import
bert_tf`, before or after Keras, is all that `keras.models.load_model` needs."""

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping
from typing import Any


class _Later:
    """An entry of Keras's registry for a class that is imported when a saved model names it."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name

    def from_config(self, config: dict[str, Any]) -> Any:
        return getattr(importlib.import_module(self.module), self.name).from_config(config)


class _WhenKerasIsImported(importlib.abc.MetaPathFinder):
    """Runs `action` after Keras's own import."""

    def __init__(self, action: Callable[[], None]):
        self.action = action

    def find_spec(self, fullname, path=None, target=None):
        """Returns Keras's spec, as the other finders give it, whose execution ends with the action.

        The finder stays in place until then: a program may look for Keras without importing it.
        """
        if fullname != "keras":
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)),
                    None)
        if spec is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module):
                execute(module)
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    self.action()

            loader.exec_module = exec_module
        return spec


def register_later(homes: Mapping[str, str]) -> None:
    """Registers classes now, or when Keras is imported; `homes` are their modules by name."""
    def register():
        registry = importlib.import_module("keras").saving.get_custom_objects()
        for name, module in homes.items():
            registry.setdefault(f"bert_tf>{name}", _Later(module, name))

    if "keras" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _WhenKerasIsImported(register))

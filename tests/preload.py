"""What the server of `processes.py` imports: TensorFlow and Keras, without the packages that Keras
alone would import, as in run_scripts/commands.py; these take a third of the time."""

import importlib
import sys

from tests.processes import PLAIN

_HIDDEN = ("matplotlib", "pandas", "sklearn")
sys.modules.update(dict.fromkeys(_HIDDEN))
for name in ("tensorflow", "keras"):
    importlib.import_module(name)
if not PLAIN:
    importlib.import_module("tests.quick").save_time()
for name in _HIDDEN:
    del sys.modules[name]

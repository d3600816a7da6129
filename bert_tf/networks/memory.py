"""Whether a network fits into the memory of this machine."""

import contextlib
import os

from bert_tf.errors import InputError

_MANY_LAYERS = 100
_MANY_WEIGHTS = 1_000_000_000


def machine_memory() -> int:
    """Returns the bytes of memory that this process may have."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open(
            "/sys/fs/cgroup/memory.max", encoding="utf-8") as file:
        memory = min(memory, int(file.read()))
    return memory


def check_memory(config) -> None:
    """Raises InputError if a network's weights do not fit; announces a network that takes long to
    make in one line."""
    weights, layers = config.num_weights, config.num_hidden_layers
    what = f"a network of {layers:,} layers and {weights:,} weights"
    memory = machine_memory()
    if 4 * weights > memory:
        raise InputError(f"{what} takes {4 * weights / 1e9:,.1f} GB, and this machine has "
                         f"{memory / 1e9:,.1f} GB of memory; give smaller sizes.")
    if layers > _MANY_LAYERS or weights > _MANY_WEIGHTS:
        print(f"building {what}, which takes a while", flush=True)

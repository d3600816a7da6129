"""The faults, which disturb a command or its files while it works, or before."""

import json
import random
import signal
from collections.abc import Callable
from typing import NamedTuple

from tests.faults import s3
from tests.faults.cell import Cell
from tests.faults.places import small_disk
from tests.faults.processes import End


class Fault(NamedTuple):
    """A kind of fault.

    Attributes:
        disturb: function of a cell and a random generator: does it, and returns how the disturbed
            commands ended, and whether the fault met them. The cell is repaired where that is the
            user's part; the same command is given again after that.
        applies: function of a cell that returns whether it can have the fault.
        is_random: whether each trial has another moment.
        is_kill: whether it is kill -9 at a random moment.
    """

    disturb: Callable[[Cell, random.Random], tuple[list[End], bool]]
    applies: Callable[[Cell], bool] = lambda cell: True
    is_random: bool = False
    is_kill: bool = False


def _signal(number, to):
    def disturb(cell, drawing):
        running = cell.start()
        struck = drawing.choice(running)
        met = struck.wait_until(cell.moment(struck, drawing), cell.limit) and (
            struck.send(number, to))
        return cell.ends(running), met
    return disturb


def _twice(cell, drawing):
    running = [*cell.start(), *cell.start(log="second.log")]
    return cell.ends(running), True


def _absent(cell, drawing):
    running = cell.start(only=[drawing.randrange(cell.command.workers)], cluster_timeout=5)
    return cell.ends(running), True


# Damage

def _cut(content, drawing):
    return content[:drawing.randrange(1, len(content))]


def _flip(content, drawing):
    at = drawing.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << drawing.randrange(8)]) + content[at + 1:]


def _empty(content, drawing):
    return b""


def _missing(content, drawing):
    return None


def _edit(content, drawing):
    """A manifest whose first shard has one record more."""
    value = json.loads(content)
    shard = value["shards"][0]
    name = next(name for name in shard if "records" in name or "count" in name)
    shard[name] += 1
    return json.dumps(value, indent=2).encode()


def _spoil(damage, find):
    """Damages a file that the command reads: before it begins, when it has done half, or when it
    has ended. A command that refuses the file finds it repaired the next time."""
    def disturb(cell, drawing):
        ends = []
        if find(cell).startswith("OUT"):
            ends = cell.do_half() if cell.command.half else cell.ends(cell.start())
        name = cell.pick(find(cell), drawing)
        folder, _, rest = name.partition("/")
        content = cell.place.read(folder)[rest]
        cell.place.write(name, damage(content, drawing))
        again = cell.ends(cell.start())
        if any(end.kind == "sentence" for end in again):
            cell.place.write(name, content)
        elif differs := cell.differs():
            again.append(End("silent", f"{name} was damaged, nobody said so, and {differs} differ"))
        return [end for end in ends if end.kind != "killed"] + again, True
    return disturb


def _swap(find, other):
    """Puts another file of the material into the place of one."""
    return lambda cell, drawing: _spoil(lambda *_: cell.material(other(cell)), find)(cell, drawing)


def _checkpoint(cell):
    own = cell.command.checkpoint == "own"
    return "OUT/checkpoint-" if own else f"IN/{cell.command.checkpoint}"


def _of_another_model(cell):
    own = cell.command.checkpoint == "own"
    return f"other_model/{'checkpoint-000000006.safetensors' if own else 'model.keras'}"


def _shard(cell):
    return f"{cell.command.records}.tfrecord"


def _of_another_job(cell):
    return ("other_records/r.tfrecord-00000-of-*" if cell.command.records.endswith("/r") else
            "other_examples/train.tfrecord")


def _manifest(cell):
    return f"{cell.command.records}.manifest.json"


def _reads_model(cell):
    return bool(cell.command.checkpoint)


def _takes_one_model(cell):
    """Conversion of a model.keras without a configuration takes any model."""
    return _reads_model(cell) and (cell.command.checkpoint != "model.keras"
                                   or "IN/config.json" in cell.command.flags.values())


def _has_records(cell):
    return bool(cell.command.records)


def _keeps_manifest(cell):
    """Records that other programs wrote have no manifest, and are trained on."""
    return cell.command.records.startswith("OUT")


# Disks and stores

def _full(cell, drawing):
    room = 20_000 + drawing.randrange(cell.output_bytes)
    with small_disk(cell.place.root, cell.input_bytes() + room) as remount:
        cell.fill()
        ends = cell.ends(cell.start())
        met = any(end.kind != "done" for end in ends)
        remount("size=1g")
        cell.finish()
        return ends, met


def _read_only(cell, drawing):
    with small_disk(cell.place.root, 1 << 30) as remount:
        cell.fill()
        remount("ro")
        ends = cell.ends(cell.start())
        remount("rw")
        cell.finish()
        return ends, True


def _store(behave, first=False):
    def disturb(cell, drawing):
        after = 0 if first else drawing.randrange(1, 8)
        with s3.proxy(cell.place.environment["AWS_ENDPOINT_URL"], behave, after) as address:
            return cell.ends(cell.start(AWS_ENDPOINT_URL=address)), True
    return disturb


def _on_disk(cell):
    return cell.place.name == "disk"


def _in_store(cell):
    return cell.place.name == "S3"


FAULTS = {
    "nothing": Fault(lambda cell, drawing: (cell.ends(cell.start()), True)),
    "kill -9 of the parent": Fault(_signal(signal.SIGKILL, "parent"), is_random=True, is_kill=True),
    "kill -9 of a child": Fault(_signal(signal.SIGKILL, "child"),
                                lambda cell: cell.command.has_children, True, True),
    "kill -9 of the group": Fault(_signal(signal.SIGKILL, "group"), is_random=True, is_kill=True),
    "SIGTERM": Fault(_signal(signal.SIGTERM, "parent"), is_random=True),
    "SIGINT": Fault(_signal(signal.SIGINT, "group"), is_random=True),
    "disk full": Fault(_full, _on_disk),
    "read-only disk": Fault(_read_only, _on_disk),
    "checkpoint cut": Fault(_spoil(_cut, _checkpoint), _reads_model),
    "checkpoint flipped": Fault(_spoil(_flip, _checkpoint), _reads_model),
    "checkpoint empty": Fault(_spoil(_empty, _checkpoint), _reads_model),
    "checkpoint of another model": Fault(_swap(_checkpoint, _of_another_model), _takes_one_model),
    "record flipped": Fault(_spoil(_flip, _shard), _has_records),
    "shard cut": Fault(_spoil(_cut, _shard), _has_records),
    "shard missing": Fault(_spoil(_missing, _shard), _has_records),
    "shard of another job": Fault(_swap(_shard, _of_another_job), _has_records),
    "manifest missing": Fault(_spoil(_missing, _manifest), _keeps_manifest),
    "manifest edited": Fault(_spoil(_edit, _manifest), _has_records),
    "two at once": Fault(_twice, lambda cell: cell.command.workers == 1),
    "worker absent": Fault(_absent, lambda cell: cell.command.workers > 1),
    "store refuses": Fault(_store(s3.refuse), _in_store),
    "store refuses at once": Fault(_store(s3.refuse, True), _in_store),
    "store slow": Fault(_store(s3.delay), _in_store),
    "store cuts every third write": Fault(_store(s3.cut), _in_store),
    "store gone": Fault(_store(s3.vanish), _in_store),
}

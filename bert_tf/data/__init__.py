"""From text to records to batches."""

from typing import Any

import lazy_loader

_own, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["batches", "instances", "masking", "records", "segments", "text"],
    submod_attrs={
        "batches.bucketing": ["sorted_batches"],
        "batches.example_set": ["ExampleSet"],
        "batches.packing": ["PackedRecords"],
        "batches.pipeline": ["RecordSet"],
        "batches.record_views": ["draw_masks", "draw_orders", "show_tokens"],
        "batches.two_texts": ["TwoTexts", "check_mixes"],
        "records": ["manifest"],
        "segments.pairing": ["PAIRINGS"],
    })
_of_relatives, _, _names = lazy_loader.attach("bert_tf", submod_attrs={
    "models.ernie.mixture": ["TaskMixture", "open_records"],
    "models.mtdnn.batches": ["SharedFeatures", "TaskBatches", "TaskExamples"],
})
__all__ += _names


def __getattr__(name: str) -> Any:
    return (_of_relatives if name in _names else _own)(name)

"""From text to records to batches."""

from typing import Any

import lazy_loader

_own, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["batches", "instances", "masking", "records", "segments", "text"],
    submod_attrs={
        "batches.bucketing": ["epoch_batches", "padded_length", "sorted_batches",
                              "steps_of_epoch"],
        "batches.example_set": ["ExampleSet"],
        "batches.packing": ["PackedRecords"],
        "batches.pipeline": ["RecordSet"],
        "batches.record_views": ["draw_masks", "draw_orders", "restore_tokens", "show_tokens"],
        "batches.two_texts": ["TwoTexts", "check_mixes"],
        "instances": ["statistics"],
        "instances.pretraining": ["Instances", "create_instances", "feature_names"],
        "records": ["features", "manifest", "tfrecord"],
        "records.features": ["pack_pairs", "truncate_pairs"],
        "records.jobs": ["FinishedPieces", "run_pieces"],
        "records.shards": ["find_damaged", "make_shards"],
        "segments.pairing": ["PAIRINGS"],
        "text": ["corpus", "vectors"],
        "text.corpus": ["Documents", "tokenize_documents"],
        "text.python_random": ["PythonRandom"],
    })
_of_relatives, _, _names = lazy_loader.attach("bert_tf", submod_attrs={
    "models.ernie.mixture": ["TaskMixture", "open_records"],
    "models.mtdnn.batches": ["SharedFeatures", "TaskBatches", "TaskExamples"],
    "models.mtdnn.order": ["TaskOrder"],
})
__all__ += _names


def __getattr__(name: str) -> Any:
    return (_of_relatives if name in _names else _own)(name)

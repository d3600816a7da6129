"""From text to records to batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["batches", "instances", "masking", "records", "segments", "text"],
    submod_attrs={
        "batches.bucketing": ["sorted_batches"],
        "batches.example_set": ["ExampleSet"],
        "batches.pipeline": ["PackedRecords", "RecordSet", "open_records"],
        "batches.record_views": ["TwoTexts", "check_mixes", "draw_masks", "draw_orders",
                                 "show_tokens"],
        "records": ["manifest"],
        "segments.pairing": ["PAIRINGS"],
    })

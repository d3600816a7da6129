"""From text to records to batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["batches", "denoising", "instances", "masking", "records", "segments", "text"],
    submod_attrs={
        "batches.bucketing": ["epoch_batches", "padded_length", "sorted_batches",
                              "steps_of_epoch"],
        "batches.example_set": ["ExampleSet"],
        "batches.packing": ["PackedRecords"],
        "batches.pipeline": ["RecordSet"],
        "batches.record_views": ["draw_masks", "draw_orders", "restore_tokens", "show_tokens"],
        "batches.task_batches": ["SharedFeatures", "TaskBatches", "TaskExamples"],
        "batches.task_mixture": ["TaskMixture", "open_records"],
        "batches.task_order": ["TaskOrder"],
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

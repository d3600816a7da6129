"""From text to records to batches."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["corpus", "features", "manifest", "statistics", "tfrecord", "vectors"],
    submod_attrs={
        "bucketing": ["epoch_batches", "padded_length", "sorted_batches", "steps_of_epoch"],
        "corpus": ["Documents", "tokenize_documents"],
        "dynamic_masks": ["DynamicMasks"],
        "example_set": ["ExampleSet"],
        "features": ["pack_pairs", "truncate_pairs"],
        "jobs": ["Progress", "run_pieces"],
        "pairing": ["PAIRINGS"],
        "pipeline": ["RecordSet"],
        "pretraining": ["Instances", "create_instances", "feature_names"],
        "python_random": ["PythonRandom"],
        "record_views": ["draw_masks", "draw_orders", "restore_tokens", "show_tokens"],
        "shards": ["find_damaged", "make_shards"],
        "static_masks": ["MASKINGS", "StaticMasks"],
        "task_batches": ["SharedFeatures", "TaskBatches", "TaskExamples"],
        "task_mixture": ["TaskMixture", "open_records"],
        "task_order": ["TaskOrder"],
        "two_texts": ["TwoTexts", "check_mixes"],
    })

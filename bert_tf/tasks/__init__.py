"""Reads files of fine-tuning tasks into records, and scores predictions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["kinds", "squad", "squad_scorer"],
    submod_attrs={
        "answer_spans": ["AnswerSpans", "SpanOptions", "cut_spans"],
        "kinds.table": ["KINDS"],
        "named": ["TASKS", "find_task"],
        "reading": ["Example", "discover_labels", "read_examples"],
        "rows": ["Omissions"],
        "split_records": ["RecordOptions", "Source", "SplitRecords"],
        "squad_answers": ["AnswerOptions", "Prediction", "find_answers", "find_file_answers"],
        "saved_task": ["TASK_FILE", "SavedTask", "kind_on_disk"],
        "task": ["Defaults", "Kind", "Split", "Task"],
        "task_flags": ["SquadFlags", "TaskFlags", "own_task"],
    })

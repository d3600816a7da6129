"""From the files of fine-tuning tasks to records, and from predictions to scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=["decoding", "predictions", "squad", "squad_scorer"],
    submod_attrs={
        "answer_spans": ["AnswerSpans", "SpanOptions", "cut_spans"],
        "encoding": ["encode"],
        "own": ["own_task", "with_labels"],
        "reading": ["Example", "discover_labels", "read_examples"],
        "records": ["Options", "Source", "SplitRecords"],
        "saved": ["TASK_FILE", "SavedTask"],
        "squad_answers": ["AnswerOptions", "Prediction", "predict_answers", "predict_file"],
        "squad_records": ["SquadRecords"],
        "submission": ["write_submission"],
        "named": ["TASKS", "find_task"],
        "rows": ["Omissions"],
        "task": ["KINDS", "Defaults", "Split", "Task"],
    })

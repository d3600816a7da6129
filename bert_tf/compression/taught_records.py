"""Records that hold teachers' answers, of texts and of SQuAD files, N sequences. Every text or
question is answered once: a killed command resumes with the remaining ones."""

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
from scipy.special import log_softmax, logsumexp

from bert_tf.compression.student import TEACHER_LOGITS
from bert_tf.compression.teachers import Teachers
from bert_tf.data.records.features import Feature
from bert_tf.errors import InputError
from bert_tf.tasks.answer_spans import AnswerSpans, SquadRecords
from bert_tf.tasks.split_records import PieceWriter, SplitRecords
from bert_tf.tokenization import open_tokenizer

_SHARD_EXAMPLES = 1 << 10       # labelled before the work is noted
_LEAST = -1e9       # of a logit


class _TaughtWriter(PieceWriter):
    teachers: Teachers

    def encode(self, examples):
        features, cut = super().encode(examples)
        counts = self._task.kind.count_records(
            examples, self._tokenizer, self._options.max_seq_length,
            dataclasses.asdict(self._options))
        return {**features, **self.teachers.answer(self._task, examples, features, counts)}, cut


class TaughtRecords(SplitRecords):
    """The records of a student's texts, with teachers' answers; other arguments are the student's,
    see `SplitRecords`."""

    shard_examples = _SHARD_EXAMPLES
    workers = 1     # this process, where the teachers are

    def __init__(self, source, options, tokenizer, output_dir: str, teachers: Teachers):
        self._teachers = teachers
        super().__init__(source, options, tokenizer, output_dir)

    @property
    def by_document(self) -> bool:
        return super().by_document or self._teachers.read_documents

    @property
    def features(self):
        return (*super().features, *self._teachers.features(self._source.task, self._num_choices))

    def fingerprint(self):
        return {**super().fingerprint(), "teachers": self._described,
                "teacher_vocabularies": [
                    open_tokenizer(teacher.folder, teacher.saved.do_lower_case).vocabulary.hash
                    for teacher in self._teachers.members]}

    @functools.cached_property
    def _described(self):
        return self._teachers.describe()

    def writer(self, count):
        made = _TaughtWriter(self._source.task, self._options, self._tokenizer, self._output_file,
                             self.by_document, count)
        made.teachers = self._teachers
        return made


@dataclasses.dataclass(frozen=True)
class TaughtSquadRecords(SquadRecords):
    """Records of questions with the teachers' logits of starts and ends, `teacher_logits` [2 * S].
    The teachers read the student's sequences: their tokenizers are the same."""

    teachers: Teachers | None = None

    piece_questions: ClassVar[int] = 1 << 10
    workers: ClassVar[int] = 1

    @classmethod
    def of(cls, records: SquadRecords, teachers: Teachers) -> "TaughtSquadRecords":
        """Makes records with answers of `teachers`. InputError if a teacher has another tokenizer,
        shorter sequences, or a head that predicts ends from starts."""
        tokenizer = records.tokenizer
        for teacher in teachers.members:
            own = open_tokenizer(teacher.folder, teacher.saved.do_lower_case)
            if own.vocabulary.tokens != tokenizer.vocabulary.tokens or (
                    own.describe() != tokenizer.describe()):
                raise InputError(f"--teacher={teacher.folder} and the student have different "
                                 "tokenizers, but answers start and end at tokens; give the "
                                 "teacher's vocabulary as --vocab_file.")
            teacher.check_length(records.options.max_seq_length)
            if teacher.head != "answer_span":
                raise InputError(f"--teacher={teacher.folder} predicts ends from a few starts; "
                                 "name a teacher that was trained with --squad_style=bert.")
        return cls(**{field.name: getattr(records, field.name)
                      for field in dataclasses.fields(SquadRecords)}, teachers=teachers)

    @property
    def features(self) -> tuple[Feature, ...]:
        return (*super().features, Feature(TEACHER_LOGITS, "float32", "L*S"))

    def further_fingerprint(self) -> dict[str, Any]:
        assert self.teachers is not None
        return {"teachers": self.teachers.describe()}

    def encode(self, spans: AnswerSpans, first: int, last: int) -> dict[str, np.ndarray]:
        features = super().encode(spans, first, last)
        assert self.teachers is not None
        by_teacher = [teacher.read(features, self.options.max_seq_length)
                      for teacher in self.teachers.members]
        logits = np.stack([[answers[f"{end}_logits"] for end in ("start", "end")]
                           for answers in by_teacher])               # [teachers, 2, N, S]
        if len(by_teacher) == 1 or self.teachers.average == "logits":
            logits = logits.mean(0)
        else:
            likely = log_softmax(logits.astype(np.float64), axis=-1)
            logits = np.maximum(logsumexp(likely, axis=0) - np.log(len(by_teacher)), _LEAST)
        return {**features, TEACHER_LOGITS: np.moveaxis(logits, 1, 0).reshape(
            last - first, -1).astype(np.float32)}

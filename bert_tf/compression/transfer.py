"""A student's training texts: the task's training file, and texts without labels."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bert_tf.errors import InputError
from bert_tf.tasks import forms
from bert_tf.tasks.reading import read_examples, without_breaks
from bert_tf.tasks.rows import Omissions, read_lines
from bert_tf.tasks.split_records import Source
from bert_tf.tasks.task import OF_WORDS, Split
from bert_tf.tasks.task_flags import COLUMNS


class TransferExample(NamedTuple):
    """An `Example`; `is_labelled` is whether it has a gold label."""

    texts: list
    label: Any
    document: int
    is_labelled: bool


@dataclasses.dataclass(frozen=True)
class TransferSource(Source):
    """The training file of a task, if it `has_own`, and `further` files of texts without labels.
    Tables have the columns of the training file; others are read line by line, for pairs each line
    with the one after it. `augment` is a function from an example's texts and number to further
    examples' texts, or None."""

    further: tuple[str, ...] = ()
    has_own: bool = True
    augment: Callable[[list, int], list] | None = None

    def examples(self, omissions: Omissions | None = None) -> Iterator[TransferExample]:  # type: ignore[override]
        """Yields the examples; examples with labels come first."""
        if self.has_own:
            for example in super().examples(omissions):
                yield TransferExample(*example, True)
        if self.augment:
            own = super().examples(Omissions(self.skip_malformed_lines))
            for number, example in enumerate(own):
                for texts in self.augment(example.texts, number):
                    yield self._unlabelled(texts, example.document)
        for path in self.further:
            yield from self._of_file(path)

    def _unlabelled(self, texts, document=0):
        ids = {label: index for index, label in enumerate(self.task.labels)}
        return TransferExample(texts, self.task.kind.label(self.task, ids, texts, None, ""),
                               document, False)

    def _of_file(self, path):
        own = self.task.split(self.split)
        columns = own.texts
        if own.format in OF_WORDS:
            form = forms.form_of_words(path)
            if form != own.format:
                columns = COLUMNS.get(form, self.task.kind.default_columns)[:1]
        else:
            form = forms.form_of(path)
        if form == forms.CONLLU and own.format not in OF_WORDS:
            raise InputError(f"--transfer_file: {path} is CoNLL-U; give texts or a table.")
        if not form:
            for texts in read_texts(path, len(own.texts)):
                yield self._unlabelled([without_breaks(text, own) for text in texts])
            return
        layout = Split((path,), columns, None, own.choices, form, own.header, words=own.words,
                       line_break=own.line_break)
        task = dataclasses.replace(self.task, splits={**self.task.splits, "transfer": layout})
        for example in read_examples(task, "transfer", path, Omissions(self.skip_malformed_lines)):
            yield TransferExample(*example, False)

    def check_files(self) -> None:
        """Raises InputError if there is nothing to learn from, or a file is absent or empty."""
        if not (self.has_own or self.further or self.augment):
            raise InputError("there is nothing to learn from: give --transfer_file, "
                             "--augmentation or --train_examples.")
        for path in self.further:
            if next(self._of_file(path), None) is None:
                raise InputError(f"--transfer_file: {path} holds no text (for pairs, no two lines "
                                 "in a row); name another file, or leave it out.")


def read_texts(path: str, count: int) -> Iterator[list]:
    """Yields `count` (1 or 2) successive lines of a text each; blank lines end documents."""
    last: list[str] = []
    for _, line in read_lines(path):
        last = [*last, line.strip()][-count:] if line.strip() else []
        if len(last) == count:
            yield list(last)

"""Adds words to a vocabulary.

Words go to the end, or, with --fill_unused, first into the [unused...] slots of Google's
vocabularies, which leaves a model's size as it is. bert-convert-checkpoint --vocab_file then gives
each new word the mean of its old sub-words.

Example:
    bert-build-vocab --init_vocab_file=vocab.txt --words=covid,ehealth --output_file=new/vocab.txt
"""

import dataclasses
import os

from bert_tf import files, flags
from bert_tf.errors import InputError
from bert_tf.flags import REQUIRED, option
from bert_tf.tasks.rows import read_lines
from bert_tf.tokenization import Vocabulary, is_unused, open_tokenizer, split_chunks
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARS

_MANY_PARTS = 8     # of a line that is a sentence rather than a word


@dataclasses.dataclass
class ExtendVocabFlags:
    """Vocabulary, and words to add."""

    init_vocab_file: str = option(
        REQUIRED, "The vocabulary that words are added to: a vocab.txt, or a model's folder.")
    output_file: str = option(REQUIRED, "File for the new vocabulary.")
    words: list[str] = option([], "Words to add.")
    input_file: list[str] = option(
        [], "Files with words to add, one per line, plain or compressed.")
    fill_unused: bool = option(False, "Fill [unused...] slots first.")
    do_lower_case: bool | None = option(
        None, "Lower-case the words, as the tokenizer does with text. Default: as the "
        "tokenizer_config.json beside the vocabulary says, else as its tokens show.")


def _words_of_flags(job):
    yield from (("--words", word) for word in job.words)
    paths = job.input_file and files.find_files(job.input_file, "input_file", [job.output_file])
    for path in paths:
        yield from ((f"{path}, line {number}", line.strip()) for number, line in read_lines(path))


def read_words(job, tokenizer):
    """Returns the words of both flags, as the tokenizer will see them, each once; the tokenizer
    must see each as one word."""
    words = {}
    for place, word in _words_of_flags(job):
        bare = word.removeprefix("##")
        mark = word.removesuffix(bare)
        parts = [part for chunk in split_chunks(bare) for part in tokenizer.split(chunk)]
        if word and (len(parts) != 1 or len(parts[0]) > MAX_WORD_CHARS):
            advice = "add its parts"
            if len(parts) > _MANY_PARTS:
                advice = "give a list of words, one per line, not a text"
            raise InputError(f"{place}: {word[:60]!r} is not a single word to the tokenizer, which "
                             f"sees {' '.join(parts)[:60] or 'nothing'!r}; {advice}.")
        if word:
            words[mark + parts[0]] = None
    if not words:
        raise InputError("there is no word to add; give --words or --input_file.")
    return list(words)


def extend(vocabulary, words, fill_unused):
    """`vocabulary`'s tokens with the words that it lacks, first in [unused...] if `fill_unused`."""
    new = [word for word in words if word not in vocabulary.ids]
    unused = fill_unused * sum(map(is_unused, vocabulary.tokens))
    first, rest = iter(new[:unused]), new[unused:]
    return [next(first, token) if fill_unused and is_unused(token) else token
            for token in vocabulary.tokens] + rest


def main(job: ExtendVocabFlags) -> None:
    files.check_file(job.output_file, "output_file")
    tokenizer = open_tokenizer(job.init_vocab_file, job.do_lower_case)
    if tokenizer.name != "wordpiece":
        raise InputError("--init_vocab_file: words can only be added to a WordPiece vocabulary, "
                         f"and {job.init_vocab_file} is {tokenizer.name}; add them with "
                         "transformers (add_tokens and resize_token_embeddings), and give the "
                         "folder that it saves to --init_checkpoint.")
    for name in (job.init_vocab_file, os.path.join(job.init_vocab_file, "vocab.txt")):
        if all(map(files.is_file, (name, job.output_file))) and (
                files.same_file(name, job.output_file)):
            raise InputError(f"--output_file: {job.output_file} is the vocabulary of "
                             "--init_vocab_file, which a model may need; name another file.")
    vocabulary = tokenizer.vocabulary
    words = read_words(job, tokenizer)
    new = Vocabulary(extend(vocabulary, words, job.fill_unused))
    folder, name = os.path.split(job.output_file)
    files.make_folder(folder, "output_file")
    flags.keep(job, folder, name + ".")
    tokenizer.describe_beside(job.output_file)
    with files.write_aside(job.output_file, newline="\n") as file:
        file.writelines(f"{token}\n" for token in new.tokens)
    added = [word for word in words if word not in vocabulary.ids]
    shown = [*added[:20], *["..."] * (len(added) > 20)]
    named = f" ({', '.join(shown)})" if added else ""
    print(f"{job.output_file}: {new.size} tokens, {len(added)} new{named}; "
          f"{len(words) - len(added)} were there.")


if __name__ == "__main__":
    flags.run(main, ExtendVocabFlags)

"""The tokenizer of the records, which a run keeps with its model."""

import contextlib
import os
from collections.abc import Sequence

from bert_tf import recipes
from bert_tf.config import Sizes
from bert_tf.data.records import manifest
from bert_tf.errors import InputError
from bert_tf.files import exists, is_folder
from bert_tf.tokenization import Tokenizer, find_vocabulary, open_tokenizer
from run_scripts.pretraining.flags import PretrainingFlags


def find_tokenizer(job: PretrainingFlags) -> Tokenizer | None:
    """Returns the tokenizer that made the records: --vocab_file with the case and the settings in
    their manifest, or the tokenizer kept with the records; None without both.

    Raises:
        InputError: the records were made with another vocabulary.
    """
    manifests = manifest.find_manifests(manifest.record_files(job.input_file, "input_file"))
    folders = (manifest.tokenizer_folder(path) for *_, path in manifests)
    path = job.vocab_file or next((folder for folder in folders if find_vocabulary(folder)), None)
    if not path:
        return None
    tokenizer = open_tokenizer(path)
    if manifests and manifests[0][0]["vocabulary"]["sha256"] != tokenizer.vocabulary.hash:
        raise InputError(f"{path} did not make the records of --input_file, according to their "
                         "manifest; name the vocabulary that made them with --vocab_file.")
    options = manifests[0][0]["options"] if manifests else {}
    if job.vocab_file and "do_lower_case" in options:   # some records lack it
        made = recipes.of_manifest(manifests[0][0])
        return open_tokenizer(path, options["do_lower_case"], saved={**made.tokenizer_settings})
    return tokenizer


def compare_teacher(tokenizer: Tokenizer | None, terms: Sequence[recipes.Term],
                    teacher: str) -> None:
    """Warns of a teacher in whose folder the vocabulary differs from the records', although it
    reads their ids, which it does unless its weights alone are compared."""
    own = find_vocabulary(teacher) if teacher else None
    if not (own and tokenizer) or any(term.objective == "WeightProjection" for term in terms):
        return
    with contextlib.suppress(InputError):       # of a vocabulary that can't be read here
        pairs = zip(open_tokenizer(own).vocabulary.tokens, tokenizer.vocabulary.tokens)
        for index, (other, token) in enumerate(pairs):
            if other == token:
                continue
            print(f"warning: --teacher={teacher} has {other!r} as token {index}, but the records "
                  f"have {token!r}, so the teacher reads other words", flush=True)
            return


def keep_model_files(tokenizer: Tokenizer | None, config: Sizes, folder: str) -> None:
    """Writes the configuration and the tokenizer, which every command needs with the weights, into
    the folder of a run; the tokenizer also into the folder of a generator."""
    path = os.path.join(folder, "bert_config.json")
    if not exists(path):
        config.to_json_file(path)
    generator = os.path.join(folder, "generator")
    for each in (folder, *([generator] if is_folder(generator) else [])):
        if tokenizer:
            tokenizer.save(each)

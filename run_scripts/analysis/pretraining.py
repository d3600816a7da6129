"""Compares a pre-trained model with baselines, shows guesses, and draws curves.

    bert-analyze pretraining --output_dir=run --eval_text=held_out.txt --picture=curves.png
"""

import csv
import dataclasses
import itertools
import os
import random
import unicodedata
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

import bert_tf
from bert_tf import checkpoints, data
from bert_tf.errors import InputError
from bert_tf.files import FLAGFILE, exists, is_file, make_folder, staged
from bert_tf.flags import REQUIRED, only, option
from bert_tf.metrics import perplexity
from bert_tf.tasks.rows import read_lines
from bert_tf.tokenization.base import Tokenizer, find_vocabulary, open_tokenizer
from bert_tf.tokenization.vocabulary import MASK, check_fits
from bert_tf.tokenization.wordpiece import is_cjk
from bert_tf.training.reporting import evaluated_on, read_metrics

_SENTENCES, _GUESSES = 10, 5
# Tokens that are too frequent to be worth a guess; of few tokens a fourth.
_COMMON = 150
# By objective: its title, and the names of the baselines of its loss and its accuracy.
_TITLES = {"masked_lm": ("masked LM", "unigram", "most frequent token"),
           "next_token": ("next token", "unigram", "most frequent token"),
           "permutation_lm": ("permutation LM", "unigram", "most frequent token"),
           "span_boundary": ("span boundary", "unigram", "most frequent token"),
           "next_sentence": ("next sentence", "shares", "majority class")}


@dataclasses.dataclass(kw_only=True)
class ShowPretrainingFlags:
    """The run, its material, and where the picture goes."""

    output_dir: str = option(REQUIRED, "The --output_dir of bert-run-pretraining.")
    vocab_file: str = option("", "The vocabulary of the run's records. Default: the vocabulary in "
                                 "--output_dir.")
    do_lower_case: bool | None = only("eval_text")(
        None, "Lower-case --eval_text and drop accents. Default: as in --output_dir, or as the "
        "vocabulary suggests.")
    input_file: list[str] = option([], "The run's training records, for the baselines. Default: as "
                                       "in --output_dir.")
    eval_input_file: list[str] = option([], "The run's held-out records. Default: as in "
                                            "--output_dir.")
    eval_text: str = option("", "Held-out text, one sentence per line, in which words are guessed; "
                                "none: no guesses. For your own text, see bert-fill-mask.")
    picture: str = option("", "PNG file for the curves; none: no curves.")
    random_seed: int = only("eval_text")(12345, "Seed that draws the words to guess.", least=0)


def records_of(run: str) -> dict[str, list[str]]:
    """The records that a run was given, by flag: the files on its training and its evaluation;
    InputError if the run did not keep its flags."""
    path, records = os.path.join(run, FLAGFILE), {}
    for _, line in read_lines(path) if is_file(path) else ():
        name, _, value = line.strip().removeprefix("--").partition("=")
        if name.endswith("input_file"):
            records[name] = next(csv.reader([value]))
    if "input_file" not in records:
        raise InputError(f"--input_file must be given, because {path} does not name the records of "
                         "the run.")
    return {"eval_input_file": records["input_file"], **records}


class Guess(NamedTuple):
    """A sentence with [MASK], the word that stood there, (text, probability) of each guess, and
    whether the word's token is one of the guesses."""

    sentence: str
    word: str
    guesses: list[tuple[str, float]]
    is_hit: bool


class Learned(NamedTuple):
    """Held-out (title, loss, accuracy, perplexity or None) of each objective and its baseline;
    guesses, and what the guess would be by frequency alone; whether the first objective is better
    than its baseline."""

    scores: list[tuple[str, float, float, float | None]]
    guesses: list[Guess]
    most_frequent: str
    helps: bool

    def __bool__(self) -> bool:
        return self.helps


def open_records(patterns: str | list[str], flag: str, objectives: Sequence, vocab_size: int
                 ) -> "data.RecordSet":
    """Opens the records of a flag as objectives read them: with masks or orders drawn where they
    hold none, or without masks."""
    opened = data.open_records(patterns, flag)
    sizes, labels = opened.format.sizes, (each.num_labels for each in objectives
                                          if "next_sentence_labels" in each.reads)
    records = opened.check(flag, sizes.get("max_seq_length", 0),
                           sizes.get("max_predictions_per_seq", 0), vocab_size,
                           next(labels, 2))
    if records.tasks:
        return records
    if "permutation_lm" in (objective.metrics_name for objective in objectives):
        return data.draw_orders(records, flag)
    if not any("masked_lm_positions" in objective.reads for objective in objectives):
        return data.show_tokens(records)
    return records if records.format.is_masked else data.draw_masks(records, flag)


def measure_baselines(objectives: Sequence, train_records: "data.RecordSet",
                      eval_records: "data.RecordSet", vocab_size: int
                      ) -> dict[str, tuple[float, float]]:
    """Returns the loss and the accuracy of guesses that look at no context, by the prefix of an
    objective's metrics, without what `eval_records` have no labels for. The loss predicts each
    training label with its share of all (one is added to each count), the accuracy always the most
    frequent one."""
    train, held_out = (count_labels(objectives, records, vocab_size)
                       for records in (train_records, eval_records))
    baselines = {}
    for name, counts in train.items():
        shares = (counts + 1) / (counts + 1).sum()
        if not (total := held_out[name].sum()):
            continue
        baselines[name] = (float(-(held_out[name] * np.log(shares)).sum() / total),
                           float(held_out[name][shares.argmax()] / total))
    return baselines


def count_labels(objectives: Sequence, records: "data.RecordSet",
                 vocab_size: int) -> dict[str, np.ndarray]:
    """Counts the classes among an objective's labels: {prefix of its metrics: int [classes]}."""
    sizes = {objective.metrics_name: getattr(objective, "num_labels", vocab_size)
             for objective in objectives}
    counts = {name: np.zeros(size, int) for name, size in sizes.items()}
    for batch in records.evaluation_batches(256, 0, 1).as_numpy_iterator():
        for objective in objectives:
            labels, weights = map(np.asarray, objective.targets(batch)[:2])
            name = objective.metrics_name
            counts[name] += np.bincount(labels[weights > 0], minlength=sizes[name])
    return counts


def draw_words(tokenizer: Tokenizer, sentences: Sequence[str], common: Collection[int], seed: int,
               count: int) -> list[tuple[str, str, int]]:
    """Draws whole words that are single tokens, one of a sentence, and masks them. A word has the
    marks after its letters that the tokenizer drops. `common` are ids of tokens that are not drawn,
    such as the ids of "the" and ",". Returns at most `count` tuples: the sentence with [MASK], the
    masked word, and its token's id."""
    rng, drawn = random.Random(seed), []
    for sentence in rng.sample(sentences, len(sentences)):
        ids, offsets = tokenizer.encode_with_offsets(sentence)
        tokens = [tokenizer.readable(index).strip() for index in ids]
        goes_on = tokenizer.continues[ids]
        places = [place for place, token in enumerate(tokens)
                  if (len(token) > 2 or is_cjk(token[:1] or " ")) and ids[place] not in common
                  and all(unicodedata.category(char)[0] in "LM" for char in token)
                  and not goes_on[place] and not (place + 1 < len(ids) and goes_on[place + 1])]
        if places and len(drawn) < count:
            place = rng.choice(places)
            begin, end = offsets[place]
            while end < len(sentence) and not tokenizer.plain.fold(sentence[end]):
                end += 1
            answer = sentence[begin:end].strip()
            drawn.append((f"{sentence[:end - len(answer)]}{MASK}{sentence[end:]}", answer,
                          ids[place]))
    return drawn


def plot(output_dir: str, baselines: dict[str, tuple[float, float]], path: str,
         records: str = "held-out") -> None:
    """Draws the losses and accuracies of a run over its steps, with the baselines, as PNG;
    `records` names the records of the evaluations."""
    from bert_tf.analysis.pictures import picture
    with picture(path, 2, len(baselines), (5.5, 3.5), sharex=True) as (_, axes):
        for column, (name, scores) in zip(axes.T, baselines.items()):
            title, *labels = titles(name)
            for axis, part, unit, score, label in zip(
                    column, ("loss", "accuracy"), (" (nats)", ""), scores, labels):
                for kind, style in (("train", "-"), ("eval", "o-")):
                    lines = [line for line in read_metrics(output_dir, kind)
                             if f"{name}/{part}" in line]
                    axis.plot([line["step"] for line in lines],
                              [line[f"{name}/{part}"] for line in lines], style, markersize=4,
                              label={"train": "training", "eval": records}[kind])
                axis.axhline(score, color="gray", linestyle="--", label=f"baseline: {label}")
                axis.set_title(f"{title} {part}{unit}")
                axis.grid(alpha=0.3)
                axis.legend(fontsize=8)
        for axis in axes[1]:
            axis.set_xlabel("step")


def titles(name: str) -> tuple[str, str, str]:
    """An objective's title, and the names of the baselines of its loss and its accuracy."""
    return _TITLES.get(name, (name.replace("_", " "), "shares", "majority class"))


def show(output_dir: str, vocab_file: str, train_records: str | list[str],
         eval_records: str | list[str], eval_text: str, picture: str,
         do_lower_case: bool | None = None, seed: int = 12345) -> Learned:
    """Prints scores with baselines and some guesses, draws the curves, and returns both. The result
    is true if the held-out accuracy of the first objective, masked LM, is above its baseline.
    `seed` draws the words that are guessed."""
    if not (vocab_file or find_vocabulary(output_dir)):
        raise InputError(f"--vocab_file must be given: there is no vocabulary in {output_dir}.")
    tokenizer = open_tokenizer(vocab_file or output_dir, do_lower_case)
    sentences = _read_sentences(eval_text) if eval_text else []
    evaluations = read_metrics(output_dir, "eval")
    if not evaluations:
        raise InputError(f"--output_dir: {output_dir} holds no evaluation; run "
                         "bert-run-pretraining with --do_eval first.")
    evaluation = evaluations[-1]
    learner = _load_model(output_dir)
    vocab_size = learner.encoder.config.vocab_size
    objectives = [each for each in learner.objectives if "accuracy" in each.measures]
    _check_metrics(output_dir, [objective.metrics_name for objective in objectives])
    records, held_out = (
        open_records(paths, flag, learner.objectives, vocab_size) for paths, flag in (
            (train_records, "input_file"), (eval_records, "eval_input_file")))
    check_fits(tokenizer.vocabulary, vocab_size, f"--vocab_file={vocab_file}")
    baselines = measure_baselines(objectives, records, held_out, vocab_size)

    scores = _scores(evaluation, baselines, [
        each.metrics_name for each in objectives if each.likelihood == "loss"])
    heading = evaluated_on(train_records, eval_records)
    print(f"{heading:<24}{'loss':>10}{'accuracy':>10}{'perplexity':>12}")
    for line, loss, accuracy, likely in scores:
        print(f"{line:<24}{loss:>10.3f}{accuracy:>10.1%}{shown_perplexity(likely):>12}".rstrip())
    first = next(iter(baselines))
    has_learned = evaluation[f"{first}/accuracy"] > baselines[first][1]
    if not has_learned:
        print("\nThe model is not better than its baseline yet: train it for more steps.")
    guesses, always = [], ""
    if "masked_lm" in baselines and sentences:
        fill = bert_tf.FillMask(output_dir, vocab_file=vocab_file or None,
                                do_lower_case=do_lower_case)
        guesses, always = _guess(fill, sentences,
                                 count_labels(objectives, records, vocab_size)["masked_lm"], seed)
    if picture:
        plot(output_dir, baselines, picture, heading)
        print(f"\ncurves: {picture}", flush=True)
    return Learned(scores, guesses, always, has_learned)


def shown_perplexity(value: float | None) -> str:
    """The text of a perplexity; "" for what is not a language model."""
    return "" if value is None else f"{value:,.1f}"


def _scores(evaluation, baselines, language_models):
    scores = []
    for name, (loss, accuracy) in baselines.items():
        title, label, _ = titles(name)
        label = {"shares": "majority"}.get(label, label)
        scores += [(title, evaluation[f"{name}/loss"], evaluation[f"{name}/accuracy"],
                    evaluation.get(f"{name}/perplexity")),
                   (f"  {label} baseline", loss, accuracy,
                    perplexity(loss) if name in language_models else None)]
    return scores


def _load_model(output_dir):
    import keras  # not lazily: see tests/test_architecture.py
    # The records have labels for ELECTRA's generator, not for the objective of its model.
    paths = [os.path.join(output_dir, *names) for names in (("generator", "model.keras"),
                                                            ("model.keras",))]
    path = next(filter(exists, paths), paths[-1])
    for tensor in checkpoints.read_source(path).tensors.values():
        tensor.read()           # whatever is damaged is named
    return keras.models.load_model(staged(path), compile=False)


def _check_metrics(output_dir, names):
    path, keys = os.path.join(output_dir, "metrics.jsonl"), ["step", *(
        f"{name}/{part}" for name in names for part in ("loss", "accuracy"))]
    for kind in ("train", "eval"):
        lines = read_metrics(output_dir, kind)
        for key in keys:
            values = [line.get(key) for line in lines if key in line or key == "step"]
            if lines and not (values and all(isinstance(value, (int, float)) for value in values)):
                raise InputError(
                    f"{path}: a line of the kind {kind!r} has no {key!r}, which the model learns; "
                    "give the folder of the model's run.")


def _read_sentences(eval_text):
    lines = [line.strip() for _, line in itertools.islice(read_lines(eval_text), 4000)]
    lines = [line for line in lines if line and MASK not in line]
    # Sentences that people read at a glance, and still can guess from.
    return [line for line in lines if 8 <= len(line.split()) <= 25] or [
        line for line in lines if len(line.split()) < 50]


def _guess(fill, sentences, counts, seed):
    order = np.argsort(-counts, kind="stable")
    common = order[:min(_COMMON, int((counts > 0).sum()) // 4)].tolist()
    words = draw_words(fill.tokenizer, sentences, set(common), seed, _SENTENCES)
    always = fill.tokenizer.readable(int(order[0]))
    print(f"\n{len(words)} words of held-out sentences, drawn by seed {seed} before the guesses "
          f"were known;\nthe {len(common)} most frequent tokens are left out. By frequency alone "
          f"the guess is always {always!r}.")
    guesses = [Guess(shown, answer, [(guess["text"].strip(), guess["probability"])
                                     for guess in filled["masks"][0]],
                     index in [guess["id"] for guess in filled["masks"][0]])
               for (shown, answer, index), filled in zip(
                   words, fill.stream([shown for shown, *_ in words], _GUESSES))]
    for one in guesses:
        print(f"  {one.sentence}\n      {one.word!r} stood there; guesses: " + ", ".join(
            f"{text} {probability:.0%}" for text, probability in one.guesses)
            + ("  <- right" if one.is_hit else ""))
    print(f"{sum(one.is_hit for one in guesses)} of {len(words)} words are among the {_GUESSES} "
          "guesses")
    return guesses, always


def main(job: ShowPretrainingFlags) -> None:
    """Runs `show` as a program."""
    if not exists(job.output_dir):
        raise InputError(f"--output_dir: there is no {job.output_dir}; name the --output_dir of "
                         "bert-run-pretraining.")
    if job.picture:
        make_folder(os.path.dirname(job.picture), "picture")
    known = {} if job.input_file and job.eval_input_file else records_of(job.output_dir)
    show(job.output_dir, job.vocab_file, job.input_file or known["input_file"],
         job.eval_input_file or known["eval_input_file"], job.eval_text, job.picture,
         job.do_lower_case, job.random_seed)

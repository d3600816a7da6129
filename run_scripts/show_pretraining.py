"""Shows what a pre-training run learned: scores beside baselines, guesses, and curves as a picture.

Example:
    bert-show-pretraining --output_dir=run --vocab_file=vocab.txt --input_file=train.tfrecord \\
        --eval_input_file=held_out.tfrecord --eval_text=held_out.txt --picture=curves.png
"""

import dataclasses
import itertools
import os

import numpy as np

from bert_tf import flags
from bert_tf.data.features import pack_pairs
from bert_tf.errors import InputError
from bert_tf.files import replace_aside
from bert_tf.flags import REQUIRED, option
from bert_tf.tokenization.base import open_tokenizer
from bert_tf.tokenization.vocabulary import check_fits
from bert_tf.training.reporting import read_metrics

_SENTENCES, _GUESSES = 5, 5


@dataclasses.dataclass
class Job:
    """The flags."""

    output_dir: str = option(REQUIRED, "The --output_dir of run_pretraining.")
    vocab_file: str = option(REQUIRED, "The vocabulary of its records.")
    input_file: str = option(REQUIRED, "Its training records: what the baselines guess from.")
    eval_input_file: str = option(REQUIRED, "Its held-out records.")
    eval_text: str = option(REQUIRED, "Held-out text, one sentence a line, to guess words in.")
    picture: str = option(REQUIRED, "Where the curves go, as PNG.")


@dataclasses.dataclass(frozen=True)
class Baselines:
    """Scores of guesses that look at no context.

    Attributes:
        mlm_loss, mlm_accuracy: of predicting the training labels' unigram distribution (with one
            added to each count), and its most frequent token.
        nsp_loss, nsp_accuracy: of predicting the training labels' shares, and the majority class.
    """

    mlm_loss: float
    mlm_accuracy: float
    nsp_loss: float
    nsp_accuracy: float


def measure_baselines(train_records, eval_records, vocab_size):
    """`Baselines` of two RecordSets."""
    train_tokens, train_classes = _count_labels(train_records, vocab_size)
    eval_tokens, eval_classes = _count_labels(eval_records, vocab_size)

    def scores(train, held_out, added):
        shares = (train + added) / (train + added).sum()
        loss = -(held_out * np.log(shares)).sum() / held_out.sum()
        return float(loss), float(held_out[shares.argmax()] / held_out.sum())

    return Baselines(*scores(train_tokens, eval_tokens, 1), *scores(train_classes, eval_classes, 1))


def _count_labels(records, vocab_size):
    """How often each token and each class is a label: int [V] and int [2]."""
    tokens, classes = np.zeros(vocab_size, int), np.zeros(2, int)
    for batch in records.evaluation_batches(256, 0, 1).as_numpy_iterator():
        used = batch["masked_lm_weights"] > 0
        tokens += np.bincount(batch["masked_lm_ids"][used], minlength=vocab_size)
        real = batch["is_real_example"] > 0
        classes += np.bincount(batch["next_sentence_labels"][real, 0], minlength=2)
    return tokens, classes


def guess(learner, tokenizer, sentences, length):
    """Masks a word of each sentence and lists the model's best guesses.

    Args:
        learner: `Learner` with a masked LM.
        tokenizer: `Tokenizer`.
        sentences: list of str.
        length: longest input.

    Yields:
        (the sentence with [MASK], the word that stood there, [(guess, probability), ...]).
    """
    vocabulary = tokenizer.vocabulary
    layout = vocabulary.layout
    for number, sentence in enumerate(sentences):
        ids = tokenizer.encode(sentence)[:layout.room(length, pair=False)]
        tokens = tokenizer.tokens(ids)
        # Whole words that are not punctuation; another part of the sentence each time.
        goes_on = tokenizer.continues[ids]
        whole = [i for i, token in enumerate(tokens) if len(token) > 2 and token.isalpha()
                 and not (i + 1 < len(tokens) and goes_on[i + 1])]
        if not whole:
            continue
        at = whole[(number * 7 + 3) % len(whole)]
        answer, ids[at] = tokens[at], vocabulary.mask_id
        packed = pack_pairs(np.array(ids), [0], [len(ids)], [0], [0], layout.length(len(ids), 0),
                            vocabulary)
        features = {name: values.astype(np.int32) for name, values in packed.items()}
        position = np.array([[layout.before + at]], np.int32)
        logits = learner({**features, "masked_lm_positions": position})["masked_lm"]
        scores = np.asarray(logits)[0, 0].astype(float)
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        best = np.argsort(-shares)[:_GUESSES]
        shown = " ".join([*tokens[:at], "[MASK]", *tokens[at + 1:]]).replace(" ##", "")
        yield shown, answer, [(vocabulary.tokens[i], shares[i]) for i in best]


def plot(output_dir, baselines, path):
    """Draws the losses and accuracies of a run over its steps, with the baselines, as PNG."""
    import matplotlib  # pylint: disable=import-outside-toplevel
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), sharex=True, layout="constrained")
    panels = (("masked_lm/loss", "masked LM loss (nats)", baselines.mlm_loss, "unigram"),
              ("next_sentence/loss", "next sentence loss (nats)", baselines.nsp_loss, "shares"),
              ("masked_lm/accuracy", "masked LM accuracy", baselines.mlm_accuracy,
               "most frequent token"),
              ("next_sentence/accuracy", "next sentence accuracy", baselines.nsp_accuracy,
               "majority class"))
    for axis, (name, title, baseline, label) in zip(axes.flat, panels):
        for kind, style in (("train", "-"), ("eval", "o-")):
            lines = read_metrics(output_dir, kind)
            axis.plot([line["step"] for line in lines], [line[name] for line in lines], style,
                      markersize=4, label={"train": "training", "eval": "held-out"}[kind])
        axis.axhline(baseline, color="gray", linestyle="--", label=f"baseline: {label}")
        axis.set_title(title)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    for axis in axes[1]:
        axis.set_xlabel("step")
    with replace_aside(path, ".png") as aside:
        figure.savefig(aside, dpi=110)
    pyplot.close(figure)


def show(output_dir, vocab_file, train_records, eval_records, eval_text, picture):
    """Prints scores beside baselines and some guesses, and draws the curves.

    Returns:
        Whether held-out masked LM accuracy is above that of the unigram baseline.
    """
    import keras  # pylint: disable=import-outside-toplevel
    from bert_tf.data.pipeline import RecordSet  # pylint: disable=import-outside-toplevel
    tokenizer = open_tokenizer(vocab_file, do_lower_case=True)
    vocabulary = tokenizer.vocabulary
    baselines = measure_baselines(RecordSet.open(train_records, "input_file"),
                                  RecordSet.open(eval_records, "eval_input_file"), vocabulary.size)
    evaluations = read_metrics(output_dir, "eval")
    if not evaluations:
        raise InputError(f"--output_dir: {output_dir} holds no evaluation; run run_pretraining "
                         "with --do_eval first.")
    found = evaluations[-1]
    print(f"{'held-out':<24}{'loss':>10}{'accuracy':>10}")
    for name, loss, accuracy in (
            ("masked LM", found["masked_lm/loss"], found["masked_lm/accuracy"]),
            ("  unigram baseline", baselines.mlm_loss, baselines.mlm_accuracy),
            ("next sentence", found["next_sentence/loss"], found["next_sentence/accuracy"]),
            ("  majority baseline", baselines.nsp_loss, baselines.nsp_accuracy)):
        print(f"{name:<24}{loss:>10.3f}{accuracy:>10.1%}")

    learner = keras.models.load_model(os.path.join(output_dir, "model.keras"), compile=False)
    check_fits(vocabulary, learner.encoder.config.vocab_size, f"--vocab_file={vocab_file}")
    with open(eval_text, encoding="utf-8") as file:
        lines = [line.strip() for line in itertools.islice(file, 4000)]
    lines = [line for line in lines if 8 <= len(line.split()) <= 25]
    lines = lines[::max(1, len(lines) // _SENTENCES)][:_SENTENCES]
    print("\nbest guesses for a masked word of held-out sentences (the word that stood there)")
    length = learner.encoder.config.max_position_embeddings
    for shown, answer, best in guess(learner, tokenizer, lines, length):
        print(f"  {shown}  ({answer})")
        print("      " + ", ".join(f"{token} {share:.0%}" for token, share in best))
    plot(output_dir, baselines, picture)
    print(f"\ncurves: {picture}", flush=True)
    return found["masked_lm/accuracy"] > baselines.mlm_accuracy


def main(job):
    """`show`, as a program."""
    show(job.output_dir, job.vocab_file, job.input_file, job.eval_input_file, job.eval_text,
         job.picture)


def run():
    """The console entry point."""
    flags.run(main, Job)


if __name__ == "__main__":
    run()

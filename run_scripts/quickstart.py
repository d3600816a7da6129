"""Pre-trains a BERT-Tiny on text, scores it and fine-tunes it, in minutes.

Without --input_file the text is the documentation of Python and of libraries that bert_tf requires,
which is on this machine already. Every part is one of the other commands, with small settings;
finished parts are not repeated. The command fails if the model predicts masked words no better than
the most frequent word does.

Example:
    bash run_scripts/quickstart.sh --input_file=my_text.txt --output_dir=my_bert
"""

import dataclasses
import os
import time

from bert_tf import flags
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError
from bert_tf.files import (
    absolute,
    exists,
    file_size,
    find_files,
    make_folder,
    open_file,
    with_whole_names,
)
from bert_tf.flags import option
from bert_tf.kept import Kept
from bert_tf.tokenization.base import open_tokenizer
from bert_tf.tokenization.vocabulary import MASK
from bert_tf.training.reporting import duration
from bert_tf.training.settings import TrainSettings
from data_prep import build_vocab, create_pretraining_data, extract_text
from run_scripts import commands, quickstart_answers, run_pretraining
from run_scripts.analysis import pretraining
from run_scripts.quickstart_report import draw_attention, write_report

# The text comes from these packages only. On text of all installed packages a model does not learn
# next sentences in so few steps, so that its [CLS] does not help fine-tuning.
_PACKAGES = [*quickstart_answers.LIBRARIES, "keras", "numpy", "sklearn"]
_VOCAB_SIZE = 8000
_LENGTH, _PREDICTIONS = 128, 20


@dataclasses.dataclass
class QuickstartFlags:
    """The text, where everything goes, and how long to train."""

    input_file: list[str] = option(
        [], "Your own plain text: files, globs or folders, plain or .gz. Default: the "
        "documentation of Python and of TensorFlow, Keras, NumPy, SciPy, scikit-learn and "
        "matplotlib.")
    output_dir: str = option("quickstart_output", "Folder for everything that is written.")
    num_train_steps: int = option(1500, "Training steps, of 32 sequences of 128 tokens each.",
                                  least=1)
    random_seed: int = option(12345, "Seed of everything.", least=0, most=(1 << 31) - 1)
    do_lower_case: bool = option(
        True, "Lower-case the text and drop accents. If false, the model tells capital letters and "
        "accents apart.")
    working_dir: str = option(".", "Folder that relative paths start from.")

    __post_init__ = flags.check


def _say(number, text):
    print(f"\n== {number}/6 {text}", flush=True)


def _begin(job, folder):
    Kept(os.path.join(folder, "quickstart.json"), with_whole_names({
        "input_file": [[name, file_size(name)] for name in job.input_file],
        "random_seed": job.random_seed, "do_lower_case": job.do_lower_case}), folder).begin()


def loop_steps(steps: int) -> int:
    """Returns the steps between two points of the curves, of which there are 40 to 80. They divide
    `steps` if any such number does, so each point is a mean over equally many steps."""
    most = max(1, steps // 40)
    return next((loop for loop in range(most, steps // 80, -1) if steps % loop == 0), most)


def _prepare(job, path):
    text, held_out, vocab = map(path, ("train.txt", "held_out.txt", "vocab.txt"))
    _say(1, "text: one sentence per line, a blank line between documents")
    if exists(text) and exists(held_out):
        print(f"{text} and {held_out} are there already")
    else:
        extract_text.main(extract_text.ExtractTextFlags(
            output_file=text, input_file=job.input_file, eval_file=held_out,
            packages=[] if job.input_file else _PACKAGES))
    _say(2, f"vocabulary: up to {_VOCAB_SIZE:,} WordPieces learned from the text")
    if exists(vocab):
        print(f"{vocab} is there already")
    else:
        build_vocab.main(build_vocab.BuildVocabFlags(
            input_file=[text], output_file=vocab, vocab_size=_VOCAB_SIZE,
            do_lower_case=job.do_lower_case))
    _say(3, "records: pairs of sentences with masked words")
    for name, dupe_factor in (("train", 5), ("held_out", 1)):
        create_pretraining_data.main(create_pretraining_data.PretrainingDataFlags(
            input_file=[path(f"{name}.txt")], output_file=[path(f"{name}.tfrecord")],
            vocab_file=vocab, max_seq_length=_LENGTH, max_predictions_per_seq=_PREDICTIONS,
            dupe_factor=dupe_factor, random_seed=job.random_seed))


def _train(job, path):
    config_file = path("bert_config.json")
    vocab_size = open_tokenizer(path("vocab.txt")).vocabulary.size
    # A model that reads its text less than once needs no dropout.
    EncoderConfig.preset("tiny", vocab_size=vocab_size, hidden_dropout_prob=0.0,
                         attention_probs_dropout_prob=0.0).to_json_file(config_file)
    loop, tenth = loop_steps(job.num_train_steps), max(1, job.num_train_steps // 10)
    run = run_pretraining.PretrainingFlags(
        bert_config_file=config_file, input_file=[path("train.tfrecord")],
        eval_input_file=[path("held_out.tfrecord")], do_train=True, do_eval=True,
        max_seq_length=_LENGTH, max_predictions_per_seq=_PREDICTIONS, first_weights="neighbours")
    settings = TrainSettings(
        output_dir=path("model"), optimizer="muon", learning_rate=5e-3,
        num_train_steps=job.num_train_steps, num_warmup_steps=job.num_train_steps // 10,
        save_checkpoints_steps=loop * max(1, job.num_train_steps // 4 // loop), eval_batch_size=32,
        iterations_per_loop=loop, max_eval_steps=0, eval_steps=loop * max(1, tenth // loop),
        random_seed=job.random_seed)
    run_pretraining.main(run, settings)
    flags.keep_for("bert-run-pretraining", settings.output_dir, run, settings)


def main(job: QuickstartFlags) -> None:
    """Runs all parts and prints their results."""
    start = time.monotonic()
    os.chdir(job.working_dir)
    if job.input_file:
        job.input_file = find_files(job.input_file, "input_file")
    folder = absolute(job.output_dir)
    make_folder(folder, "output_dir")
    flags.keep(job, folder)
    _begin(job, folder)

    def path(*parts):
        return os.path.join(folder, *parts)

    _prepare(job, path)
    _say(4, f"pre-training BERT-Tiny for {job.num_train_steps:,} steps (2 layers, width 128)")
    _train(job, path)
    _say(5, "what it learned")
    learned = pretraining.show(
        path("model"), path("vocab.txt"), path("train.tfrecord"), path("held_out.tfrecord"),
        path("held_out.txt"), path("curves.png"), seed=job.random_seed)
    answers = _fine_tune(job, path)
    lines = _next_commands(job, path)
    if learned.guesses:
        sentence = learned.guesses[0].sentence.replace(MASK, learned.guesses[0].word)
    else:
        with open_file(path("held_out.txt")) as file:
            sentence = next(filter(None, map(str.strip, file)))
    draw_attention(path("attention.html"), path("model"), path("vocab.txt"), sentence)
    took = duration(time.monotonic() - start)
    write_report(path("report.html"), "A BERT of your own",
                 f"BERT-Tiny, pre-trained for {job.num_train_steps:,} steps on "
                 f"{file_size(path('train.txt')) / 1e6:.1f} MB of text.",
                 learned, answers, path("curves.png"), path("attention.html"), lines)

    print(f"\n== done in {took}; {folder} now holds")
    for name, what in (("report.html", "all of this, to look at in a browser"),
                       ("train.txt", "the text, and held_out.txt"),
                       ("vocab.txt", "the vocabulary"),
                       ("train.tfrecord", "the records, with train.manifest.json"),
                       ("model/model.keras", "the model, for keras.models.load_model"),
                       ("model/metrics.jsonl", "all figures"),
                       ("curves.png", "the curves, a picture")):
        print(f"   {name:<20} {what}")
    print(f"next:\n{lines}", flush=True)
    if not learned:
        raise InputError("the model predicts held-out masked words no better than the most "
                         "frequent token; give more text, or more --num_train_steps.")


def _fine_tune(job, path):
    if job.input_file:
        _say(6, "fine-tuning: left out, as a text of your own has no labels")
        return None
    _say(6, "fine-tuning: which library does a sentence document?")
    # A model that was trained for longer since is another one.
    return quickstart_answers.compare(
        path(f"library-{job.num_train_steps}"), path("vocab.txt"),
        {"pre-trained": {"init_checkpoint": path("model", "model.keras")},
         "random weights": {"bert_config_file": path("bert_config.json")}}, path("held_out.txt"))


def _next_commands(job, path):
    text = "The [MASK] is open." if job.input_file else "The [MASK] of the array."
    lines = [f"bert-fill-mask --init_checkpoint={path('model')} --text='{text}'",
             f"tensorboard --logdir {path('model', 'tensorboard')}"]
    if not job.input_file:
        lines.append("bash run_scripts/quickstart.sh --input_file=my_text.txt --output_dir=my_bert")
    return "source .venv/bin/activate\n" + "\n".join(lines)


if __name__ == "__main__":
    commands.start(__name__)

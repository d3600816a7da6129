"""report.html of the quickstart: one page without references to other files."""

import base64
import html
import importlib.resources
import string
from collections.abc import Iterable, Sequence

import numpy as np

import bert_tf
from bert_tf import analysis
from bert_tf.data.text.vectors import Texts
from bert_tf.files import open_file, write_aside
from run_scripts.analysis.pretraining import Learned, shown_perplexity
from run_scripts.quickstart_answers import LABELS, Answers, snippet

_LONGEST = 64       # tokens of the text whose attention is shown


def write_report(path: str, title: str, summary: str, learned: Learned, answers: Answers | None,
                 curves: str, attention: str, commands: str) -> None:
    """Writes the page, from the files with the curves and with the page of attention, and from
    lines for a terminal that the reader can run next."""
    with open_file(curves, "rb") as file:
        picture = base64.b64encode(file.read()).decode()
    with open_file(attention) as file:
        page = html.escape(file.read())
    sections = [
        ("What it learned", "Scores on held-out text, beside guesses that look at no context.",
         _table(("", "loss", "accuracy", "perplexity"), [
             (name, f"{loss:.3f}", f"{accuracy:.1%}", shown_perplexity(likely))
             for name, loss, accuracy, likely in learned.scores])),
        ("How it learned", "Loss and accuracy over the steps.",
         f'<img alt="curves of loss and accuracy" src="data:image/png;base64,{picture}">')]
    if learned.guesses:
        sections.append((
            "Words it was asked for",
            "Words of held-out sentences, drawn by a seed without a look at the guesses. By "
            f"frequency alone the guess is always {learned.most_frequent!r}.",
            _table(("sentence", "the word", "five guesses"), [
                (one.sentence, one.word, ", ".join(
                    f"{text} {probability:.0%}" for text, probability in one.guesses))
                for one in learned.guesses], [one.is_hit for one in learned.guesses])))
    if answers:
        seeds = range(1, 1 + len(next(iter(answers.accuracies.values()))))
        sections += [
            ("A task from few labels",
             f"Which library does a sentence document? {LABELS} labelled sentences of each, "
             f"accuracy on {answers.sentences} sentences of documents that the model has never "
             "seen, one column a seed.",
             _table(("", *(f"seed {seed}" for seed in seeds), "mean"), [
                 (name, *(f"{value:.1%}" for value in (*values, np.mean(values))))
                 for name, values in answers.accuracies.items()])),
            ("What it answers", "Sentences drawn by a seed without a look at the answers.",
             _table(("sentence", "library", "answer"), [
                 (one.sentence, one.library, f"{one.label} {one.probability:.0%}")
                 for one in answers.examples],
                 [one.label == one.library for one in answers.examples])
             + "<p>Ask it yourself, in Python:</p><pre>"
             + html.escape("\n".join(snippet(answers))) + "</pre>")]
    sections += [
        ("Where its heads look", "Attention of a held-out sentence. Rest the pointer on a token.",
         f'<iframe title="attention" srcdoc="{page}"></iframe>'),
        ("Your own text", "In a terminal, from the folder of bert_tf:",
         f"<pre>{html.escape(commands)}</pre>")]
    template = string.Template((importlib.resources.files("run_scripts")
                                / "quickstart_report.html").read_text("utf-8"))
    with write_aside(path) as file:
        file.write(template.substitute(
            title=html.escape(title), summary=html.escape(summary), sections="\n".join(
                f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n{content}"
                for heading, text, content in sections)))


def _table(headings: Sequence[str], rows: Sequence[Iterable[str]],
           right: Sequence[bool] = ()) -> str:
    lines = ["<table><tr>" + "".join(f"<th>{html.escape(text)}</th>" for text in headings)
             + "</tr>"]
    for number, row in enumerate(rows):
        cells = [html.escape(text) for text in row]
        mark = ' class="right"' if right and right[number] else ""
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells[:-1])
                     + f"<td{mark}>{cells[-1]}</td></tr>")
    return "\n".join(lines) + "\n</table>"


def draw_attention(path: str, model: str, vocab_file: str, sentence: str) -> None:
    """Writes the page of a model's attention to a sentence."""
    # Not at the top: it needs TensorFlow.
    from bert_tf.analysis.page import write_page
    opened = bert_tf.open_model(model, vocab_file=vocab_file)
    features = Texts([sentence], opened.tokenizer, _LONGEST).pack(np.array([0]))
    readings = list(analysis.read(opened.network(), [features], ("attention",)))
    write_page(path, "Attention to a held-out sentence", readings, opened.tokenizer)

"""The quickstart from text to report, and the task that its model learns from few labels."""

import html.parser
import random

import pytest

from bert_tf.errors import InputError
from run_scripts import quickstart, quickstart_answers, quickstart_report
from run_scripts.analysis import pretraining
from run_scripts.analysis.pretraining import Guess, Learned
from run_scripts.quickstart_answers import Answer, Answers


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.texts, self.addresses, self.frames, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        self.frames += [value for name, value in attrs if name == "srcdoc"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(name="held_out")
def fixture_held_out(tmp_path, monkeypatch):
    """A held-out text of two of each library's documents, of five and 30 sentences, of 20."""
    texts = {library: [[f"{library} {number} {line}" for line in range(30 if number % 2 else 5)]
                       for number in range(20)] for library in quickstart_answers.LIBRARIES}
    texts["scipy"][3] = texts["scipy"][3][:25]
    monkeypatch.setattr(quickstart_answers, "documents", lambda library: iter(texts[library]))
    path = tmp_path / "held_out.txt"
    path.write_text("\n\n".join("\n".join(one) for documents in texts.values()
                                for one in documents[2:4]) + "\n")
    return str(path)


def test_training_and_held_out_sentences_are_of_different_documents(held_out):
    train, test = quickstart_answers.gather(held_out)
    for library in quickstart_answers.LIBRARIES:
        assert {text.split()[1] for text in test[library]} <= {"2", "3"}
        assert {text.split()[1] for text in train[library]} == {
            str(number) for number in range(20)} - {"2", "3"}
        # As many as the library with the fewest has.
        assert len(set(test[library])) == len(test[library]) == 30
    assert quickstart_answers.gather(held_out) == (train, test)


def test_both_networks_learn_from_the_same_sentences(held_out, tmp_path, monkeypatch, capsys):
    seen = []

    def fine_tune(data, output, vocab, seed, **model):
        print("a report")
        seen.append((seed, (tmp_path / "out" / f"data-{seed}" / "train.jsonl").read_text(), model))
        return 0.5 + seed / 100 if "init_checkpoint" in model else 0.25

    monkeypatch.setattr(quickstart_answers, "fine_tune", fine_tune)
    monkeypatch.setattr(quickstart_answers, "ask", lambda model, sentences: [
        Answer(texts[0], library, "scipy", 0.9) for library, texts in sentences.items()])
    folder = str(tmp_path / "out")
    found = quickstart_answers.compare(folder, "vocab.txt", {
        "pre-trained": {"init_checkpoint": "m"}, "random weights": {"bert_config_file": "c"}},
        held_out)
    assert found.accuracies == {"pre-trained": [0.51, 0.52, 0.53], "random weights": [0.25] * 3}
    assert found.sentences == 4 * 30 and found.folder == f"{folder}/pre-trained-1"
    assert [one[0] for one in seen] == [1, 1, 2, 2, 3, 3]
    assert all(seen[i][1] == seen[i + 1][1] for i in (0, 2, 4)) and seen[0][1] != seen[2][1]
    assert seen[0][1].count('"scipy"') == quickstart_answers.LABELS
    said = capsys.readouterr().out
    assert "a report" not in said and "a report" in (tmp_path / "out" / "log.txt").read_text()
    assert "mean:   pre-trained 52.0%, random weights 25.0%; by chance 25%" in said
    assert "wrong: matplotlib" in said and ", right" in said


def test_a_text_with_few_sentences_of_a_library_has_no_such_part(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(quickstart_answers, "documents", lambda library: iter(
        [["one", "two"], ["three"]]))
    (tmp_path / "held_out.txt").write_text("one\ntwo\n")
    assert quickstart_answers.compare(str(tmp_path), "", {}, str(tmp_path / "held_out.txt")) is None
    assert "too few sentences" in capsys.readouterr().out


@pytest.mark.parametrize("with_answers", [True, False])
def test_the_report_is_one_page_whose_texts_are_escaped(with_answers, tmp_path):
    odd = "x < y & \"z\" </script><b>"
    (tmp_path / "curves.png").write_bytes(b"\x89PNG")
    (tmp_path / "attention.html").write_text("<p>a \"page\"</p>")
    learned = Learned([("masked LM", 4.5, 0.3, 90.02),
                       ("  unigram baseline", 7.4176, 0.066, 1665.14), ("order", 0.6, 0.7, None)],
                      [Guess(f"{odd} [MASK]", "tree", [("house", 0.5), ("Tree", 0.25)], True)],
                      "the", True)
    answers = Answers({"pre-trained": [0.5, 0.7], "random weights": [0.3, 0.4]}, 432,
                      [Answer(odd, "scipy", "scipy", 0.9)], "out/pre-trained-1")
    path = tmp_path / "report.html"
    quickstart_report.write_report(
        str(path), "A BERT", "of $5", learned, answers if with_answers else None,
        str(tmp_path / "curves.png"), str(tmp_path / "attention.html"), "bert-fill-mask '<'")
    page = Page(path.read_text())
    assert page.open == [] and page.frames == ["<p>a \"page\"</p>"]
    assert [one[:22] for one in page.addresses] == ["data:image/png;base64,"]
    said = "\n".join(page.texts)
    assert f"{odd} [MASK]" in said and "house 50%, Tree 25%" in said and "of $5" in said
    assert "90.0" in said and "1,665.1" in said
    assert ("60.0%" in said) == ("scipy 90%" in said) == with_answers
    assert "bert-fill-mask '<'" in said


def test_text_to_report(eagerly, tmp_path, monkeypatch, capsys):
    """The whole quickstart on a text of one's own, with two steps of training."""
    monkeypatch.setattr(quickstart, "_VOCAB_SIZE", 120)
    rng, words = random.Random(0), "the small house of a tree near every old walk was green".split()
    (tmp_path / "mine.txt").write_text("\n\n".join("\n".join(
        " ".join(rng.choices(words, k=9)).capitalize() + "." for _ in range(4))
        for _ in range(60)) + "\n")
    job = {"input_file": [str(tmp_path / "mine.txt")], "output_dir": str(tmp_path / "out"),
           "num_train_steps": 2, "working_dir": str(tmp_path)}
    monkeypatch.chdir(tmp_path)
    try:
        quickstart.main(quickstart.QuickstartFlags(**job))
    except InputError as error:         # two steps may teach nothing
        assert "predicts held-out masked words no better" in str(error)
    said = capsys.readouterr().out
    assert "== 6/6 fine-tuning: left out" in said and "bert-fill-mask" in said
    assert pretraining.records_of(str(tmp_path / "out" / "model")) == {
        name: [str(tmp_path / "out" / records)] for name, records in (
            ("input_file", "train.tfrecord"), ("eval_input_file", "held_out.tfrecord"))}
    page = Page((tmp_path / "out" / "report.html").read_text())
    assert page.open == [] and "Words it was asked for" in page.texts
    # Which documents are held out depends on the name of the file.
    (attention,) = page.frames
    assert "[CLS]" in attention and any(f'"{word}"' in attention for word in words)
    again = quickstart.QuickstartFlags(**job | {"input_file": ["mine.txt"]})     # the same text
    quickstart._begin(again, job["output_dir"])
    again.random_seed += 1
    with pytest.raises(InputError, match="holds a run with another --random_seed"):
        quickstart._begin(again, job["output_dir"])


@pytest.mark.parametrize("steps, loop", [(1500, 30), (1000, 25), (40, 1), (7, 1), (2003, 50)])
def test_points_of_the_curves_are_means_over_equally_many_steps(steps, loop):
    assert quickstart.loop_steps(steps) == loop


@pytest.mark.parametrize("name, value", [("random_seed", -1), ("random_seed", 1 << 31),
                                         ("num_train_steps", 0)])
def test_numbers_that_training_would_refuse_are_refused_before_the_work(name, value):
    with pytest.raises(InputError, match=f"--{name} is {value}; it must be "):
        quickstart.QuickstartFlags(**{name: value})

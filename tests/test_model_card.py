"""Model cards, against the files that they are made from."""

import ast
import json
import pathlib
import re

import huggingface_hub
import pytest

import bert_tf
from bert_tf import checkpoints, model_card
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.task import Task
from run_scripts import convert_checkpoint
from tests.training import tiny

GOLDEN = pathlib.Path(__file__).parent / "golden"


def write_folder(folder, base):
    """Writes what a run leaves."""
    (folder / "trials" / "seed7").mkdir(parents=True)
    (folder / "records").mkdir()
    task = Task("mrpc", "classification", {}, ("0", "1"),
                label_names=("not_equivalent", "equivalent"))
    SavedTask(task, 16, True, {"long_text": "mean"}, 2).write(str(folder))
    for name, value in {
            "bert_config.json": {"hidden_size": 1024, "model_type": "bert"},
            "metrics.json": {"metrics": {"dev/f1": 0.84567, "loss": 0.5}},
            "results.json": {"best": "seed7", "trials": {"seed7": {"learning_rate": 5e-5,
                                                                   "num_train_epochs": 3.0}}},
            "trials/seed7/trial.json": {"settings": {"init_checkpoint": str(base),
                                                     "num_train_steps": 344}},
            "records/train.manifest.json": {"inputs": [{"name": "glue/MRPC/train.tsv"}],
                                            "counts": {"examples": 3668}}}.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "flags.txt").write_text(
        "# bert-finetune --flagfile=THIS_FILE\n--task=mrpc\n--do_train\n")
    (folder / "model.keras").touch()


def test_a_card_says_what_the_files_say(tmp_path):
    base, folder = tmp_path / "base", tmp_path / "mrpc"
    base.mkdir()
    (base / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\nBERT\n")
    write_folder(folder, base)
    path = model_card.write_card(folder)
    text = (folder / "README.md").read_text()
    assert path == str(folder / "README.md") and huggingface_hub.ModelCard(
        text).data.to_dict() == {
            "license": "apache-2.0", "library_name": "bert_tf", "tags": ["bert"],
            "pipeline_tag": "text-classification", "datasets": ["nyu-mll/glue"], "metrics": ["f1"]}
    for part in ("# mrpc", "type bert, fine-tuned for classification (mrpc): `hidden_size` 1,024.",
                 "weights of `base`", "train: 3,668 examples of `glue/MRPC/train.tsv`",
                 "| `learning_rate` | 5e-05 |", "| `max_seq_length` | 16 |",
                 "| `long_text` | mean |", "| dev/f1 | 0.8457 |", "| `num_train_epochs` | 3.0 |",
                 "`0` (not_equivalent), `1` (equivalent)",
                 "    bert-finetune \\\n        --task=mrpc \\\n        --do_train",
                 'predictor(("A text.", "Another."))'):
        assert part in text, part
    assert model_card.write_card(folder) and (folder / "README.md").read_text() == text
    (folder / "README.md").write_text("Mine.")
    assert model_card.write_card(folder) is None
    assert (folder / "README.md").read_text() == "Mine."


def test_notes_in_flags_are_no_part_of_the_command(tmp_path):
    for flags, command in (
            ("# bert-finetune --flagfile=THIS_FILE\n# hf://us/tiny@1, licence mit\n--task=mrpc\n",
             "bert-finetune \\\n        --task=mrpc"),
            ("--task=mrpc\n--text_a_column=the body\n",
             "--task=mrpc \\\n        '--text_a_column=the body'")):
        (tmp_path / "flags.txt").write_text(flags)
        assert f"## Made by\n\n    {command}\n\n" in model_card.card(str(tmp_path))


def test_a_card_that_can_not_be_written_is_a_warning(tmp_path, capsys):
    (tmp_path / "results.json").write_text("{}")
    assert model_card.write_card(tmp_path) is None and not (tmp_path / "README.md").exists()
    assert "README.md is not written (KeyError: 'best')" in capsys.readouterr().out


def test_a_multi_task_model_names_its_tasks(tmp_path):
    folder = tmp_path / "several"
    for name, labels in (("cola", ("0", "1")), ("sts-b", ())):
        (folder / "tasks" / name).mkdir(parents=True)
        kind = "classification" if labels else "regression"
        SavedTask(Task(name, kind, {}, labels), 16, True, {}, 1).write(str(folder / "tasks" / name))
    (folder / "model.keras").touch()
    (folder / "bert_config.json").write_text(
        json.dumps({"hidden_size": 1024, "model_type": "ernie"}))
    text = model_card.card(str(folder))
    assert "- cola: `0`, `1`\n- sts-b: no labels\n" in text
    assert 'bert_tf.Predictor("several", task="cola")    # or sts-b\n' in text
    assert "type ernie, fine-tuned for classification (cola): `hidden_size` 1,024." in (
        model_card.card(str(folder / "tasks" / "cola")))


@pytest.mark.parametrize("kind", KINDS)
def test_the_text_of_the_code_is_what_the_task_takes(kind, tmp_path):
    SavedTask(Task("own", kind, {}, ("0", "1")), 16, True).write(str(tmp_path))
    (given,) = re.findall(r"^print\(predictor\((.*)\)\)$", model_card.card(str(tmp_path)), re.M)
    count = len(KINDS[kind].example(ast.literal_eval(given), 0).texts)
    least, most, _ = KINDS[kind].texts
    assert least <= count <= (most or count)


def test_a_converted_model_keeps_scores_and_labels(tmp_path):
    mine = tmp_path / "mine"
    checkpoints.convert(str(GOLDEN / "google_gelu"), str(mine), "keras")
    task = Task("mrpc", "classification", {}, ("0", "1"), label_names=("no", "yes"))
    SavedTask(task, 16, True, {}, 2).write(str(mine))
    (mine / "metrics.json").write_text(json.dumps({"metrics": {"dev/f1": 0.84567}}))
    convert_checkpoint.main(convert_checkpoint.ConvertFlags(
        input=str(mine), output=str(tmp_path / "hf"), output_format="huggingface"))
    text = (tmp_path / "hf" / "README.md").read_text()
    for part in ("fine-tuned for classification (mrpc)", "| dev/f1 | 0.8457 |", "`1` (yes)",
                 "transformers.BertForPreTraining.from_pretrained('hf')"):
        assert part in text, text
    convert_checkpoint.main(convert_checkpoint.ConvertFlags(
        input=str(mine), output=str(tmp_path / "cut"), output_format="huggingface",
        leave_out=["pooler", "next_sentence"]))
    assert "dev/f1" not in (tmp_path / "cut" / "README.md").read_text()


def test_a_task_goes_with_its_head(tmp_path, monkeypatch):
    """The code of the card runs, and answers as the model does; without the head there is no
    task."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "text", "."]
    config = tiny.config(num_hidden_layers=1, vocab_size=len(words), max_position_embeddings=16)
    mine = tmp_path / "mine"
    mine.mkdir()
    bert_tf.Learner(bert_tf.BertEncoder(config), [bert_tf.Regression(config, scale=5.0)]).save(
        mine / "model.keras")
    (mine / "vocab.txt").write_text("\n".join(words) + "\n")
    SavedTask(Task("x", "regression", {}, ()), 16, True, {"label_scale": 5.0}, 1).write(str(mine))
    for name, changes in (("again", {"max_position_embeddings": 8}),
                          ("bare", {"leave_out": ["regression"]})):
        convert_checkpoint.main(convert_checkpoint.ConvertFlags(
            input=str(mine), output=str(tmp_path / name), output_format="keras", **changes))
    monkeypatch.chdir(tmp_path)
    seen = [{}, {}]
    for name, values in zip(("again", "bare"), seen):
        card = (tmp_path / name / "README.md").read_text()
        exec(re.search(r"```python\n(.*?)```", card, re.S)[1], values)
    assert seen[0]["predictor"].saved_task.max_seq_length == 8
    assert seen[0]["predictor"]("A text.") == bert_tf.Predictor(mine)("A text.")
    assert isinstance(seen[1]["encoder"], bert_tf.Bert)
    assert ("    bert-convert-checkpoint \\\n        --input=mine \\\n"
            "        --output_format=keras \\\n        --output=bare \\\n"
            "        --leave_out=regression\n") in card


@pytest.mark.parametrize("name, task", [
    ("BertForPreTraining", "fill-mask"), ("RobertaForMaskedLM", "fill-mask"),
    ("ElectraForPreTraining", None), ("ElectraModel", "feature-extraction"),
    ("BertForSequenceClassification", "text-classification"),
    ("XLNetForQuestionAnsweringSimple", "question-answering"),
    ("BertForTokenClassification", "token-classification"),
    ("AlbertForMultipleChoice", "multiple-choice"), ("BertForNextSentencePrediction", None)])
def test_the_class_of_transformers_gives_the_task_of_the_hub(name, task, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(
        {"architectures": [name], "model_type": name[:4].lower()}))
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "README.md").write_text(
        "---\nbase_model: google-bert/bert-base-cased\n---\n")
    head = huggingface_hub.ModelCard(model_card.card(
        str(tmp_path), base=str(tmp_path / "base"))).data
    assert (head.pipeline_tag, head.library_name) == (task, "transformers")
    assert head.base_model == "google-bert/bert-base-cased"     # the base's own base


def test_a_card_names_no_folder_of_this_disk(tmp_path):
    (tmp_path / "flags.txt").write_text(
        "# bert-finetune --flagfile=THIS_FILE\n--task=own\n--output_dir=/mine/all/out/\n"
        "--train_file=/mine/all/a b.tsv,/mine/all/c.tsv\n--init_checkpoint=/mine/all/base\n"
        "--eval_input_file=/mine/all/d.tsv\n--dev_file=gs://bucket/d.tsv\n--x=a/b\n"
        "--test_file=hf://datasets/us/mail@main\n--teacher=/mine/all/large\n")
    text = model_card.card(str(tmp_path), source=str(tmp_path))
    assert "/mine" not in text and str(tmp_path) not in text
    for part in ("--output_dir=out ", "'--train_file=a b.tsv,c.tsv'", "--dev_file=gs://bucket/d.tsv",
                 "--x=a/b", "weights of `base`", "- `eval_input_file=d.tsv`",
                 "| `teacher` | large |"):
        assert part in text, text
    assert huggingface_hub.ModelCard(text).data.datasets == ["us/mail"]
    command = "bert-x \\\n    --input=/mine/all/in \\\n    '--output=/mine/all/o u t'"
    assert model_card._shown(command) == ("bert-x \\\n    --input=in \\\n    '--output=o u t'")
    assert model_card._shown("--input=../me/a.csv,~/b,glue/c.tsv") == "--input=a.csv,b,glue/c.tsv"


def test_an_empty_folder_has_a_card_without_sections(tmp_path, monkeypatch):
    """A model without a base has nothing of a card where the command runs."""
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    monkeypatch.chdir(tmp_path)
    text = model_card.card(str(tmp_path / "empty"))
    assert "## Scores" not in text and "## Licence" in text
    assert huggingface_hub.ModelCard(text).data.to_dict() == {"tags": ["bert"]}

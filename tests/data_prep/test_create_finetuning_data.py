"""Records of tasks: equal for any number of workers, whole or absent, made once."""

import json
import random
import subprocess
import sys
import types

import pytest
import tensorflow as tf

from bert_tf.data.records import tfrecord
from bert_tf.data.records.features import FINETUNING
from bert_tf.errors import InputError
from bert_tf.finetuning.member import Member
from bert_tf.tasks import split_records
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import default_case, open_tokenizer
from data_prep import create_finetuning_data, verify_records
from data_prep.runners import RunnerFlags

RTE = "index\tsentence1\tsentence2\tlabel\n"


@pytest.fixture
def folder(tmp_path):
    """The official files of RTE, in small, in data/."""
    rng = random.Random(1)
    (tmp_path / "data").mkdir()
    for split, count in (("train", 23), ("dev", 4), ("test", 3)):
        lines = [f"{i}\t{rng.choice(['the house', 'a', 'b c d'])}\tthe tree."
                 + f"\t{rng.choice(['', 'not_']) + 'entailment'}" * (split != "test")
                 for i in range(count)]
        header = RTE if split != "test" else RTE.replace("\tlabel", "")
        (tmp_path / "data" / f"{split}.tsv").write_text(header + "\n".join(lines), encoding="utf-8")
    return tmp_path


@pytest.fixture
def prepare(folder, vocab_file, monkeypatch):
    """function(**flags): runs the job on data/ into out/, five examples a shard."""
    monkeypatch.setattr(split_records.SplitRecords, "shard_examples", 5)
    monkeypatch.setattr(split_records, "_BLOCK_EXAMPLES", 3)

    def run(out="out", num_workers=1, splits=(), max_seq_length=16,
            document_context=False, share="", **task):
        task = {"task": "rte", "data_dir": str(folder / "data"), **task}
        job = create_finetuning_data.FinetuningDataFlags(
            str(folder / out), str(vocab_file), splits=list(splits),
            max_seq_length=max_seq_length, document_context=document_context,
            num_workers=num_workers)
        return create_finetuning_data.main(TaskFlags(**task), job, RunnerFlags(piece_share=share))
    return run


def content(path):
    return {file.name: file.read_bytes() for file in path.iterdir()} if path.exists() else {}


def test_shares_end_with_the_files_of_one_process(prepare, folder, capsys):
    prepare(out="whole")
    assert [made["task"]["split"] for made in prepare(share="1/2")] == []
    assert "train: share 1/2 is finished" in capsys.readouterr().out
    prepare(share="0/2")
    assert len(content(folder / "whole")) > 7 and content(folder / "out") == content(
        folder / "whole")


def test_fine_tuning_tells_texts_that_come_again(folder, vocab_file, capsys):
    """In the training file itself, and in another file; and labels that contradict each other."""
    flags = TaskFlags(task="rte", data_dir=str(folder / "data"))
    train = (folder / "data" / "train.tsv").read_text() + "\n23\tonly\tthe tree.\tentailment"
    (folder / "data" / "train.tsv").write_text(train)
    (folder / "data" / "dev.tsv").write_text(RTE + "0\tonly\tthe tree.\tnot_entailment\n"
                                             "1\tonly\tthe tree.\tentailment\n")
    (folder / "data" / "test.tsv").write_text(
        "index\tsentence1\tsentence2\n0\tthe house\tanother\n1\tonly\tthe tree.\n")
    tokenizer = open_tokenizer(str(vocab_file), True)
    records = {source.split: split_records.SplitRecords(
        source, split_records.RecordOptions(16), tokenizer, str(folder / "out"))
        for source in flags.find_sources(flags.read_task(), ["train", "dev", "test"])}
    Member.make_records(types.SimpleNamespace(head_name="", flags=types.SimpleNamespace(
        records_dir="", num_workers=1)), str(folder / "out"), records)
    labels: dict = {}
    differ = sum(label != labels.setdefault(text, label) for _, text, _, label in (
        line.split("\t") for line in train.splitlines()[1:]))
    told = [line for line in capsys.readouterr().out.splitlines() if "note: the texts" in line]
    assert differ and told == [
        f"  note: the texts of {24 - len(labels)} of 24 examples are also in earlier examples, "
        f"{differ} of them with another label.",
        "  note: the texts of 2 of 2 examples are also in training examples, "
        "1 of them with another label.",
        "  note: the texts of 1 of 2 examples are also in training examples."]


@pytest.fixture
def race(tmp_path):
    """Questions with four choices."""
    rng, path = random.Random(2), tmp_path / "race.csv"
    lines = ["context,one,two,label", *(
        ",".join([" ".join(rng.choices("abcd", k=9)), " ".join(rng.choices("abcd", k=5)), "b c",
                  str(n % 2)]) for n in range(6))]
    path.write_text("\n".join(lines), encoding="utf-8")
    return {"task": "", "data_dir": "", "task_kind": "multiple_choice",
            "train_file": str(path), "text_a_column": "context",
            "choice_columns": ["one", "two"], "label_column": "label"}


@pytest.mark.parametrize("given", [
    {}, {"max_qa_length": 3}, {"max_qa_length": 3, "carry_choices": True}])
def test_choices_are_cut_as_in_training(prepare, race, folder, vocab_file, given):
    made, = prepare(**race, **given)
    options = {name: made["options"][name] for name in given}
    assert options == given
    task = TaskFlags(**race).read_task()
    source, = TaskFlags(**race).find_sources(task, ["train"])
    expected, _ = task.kind.encode(
        task, list(source.examples()), open_tokenizer(str(vocab_file)), 16, given)
    rows = [tf.train.Example.FromString(record.numpy()) for record in tf.data.TFRecordDataset(
        sorted(map(str, (folder / "out").glob("train.tfrecord*"))))]
    assert [list(row.features.feature["input_ids"].int64_list.value) for row in rows] == (
        expected["input_ids"].reshape(len(rows), -1).tolist())


def test_flags_of_choices_that_can_not_be_heeded_are_refused(prepare, race, folder):
    with pytest.raises(InputError, match="--carry_choices is for choices that --max_qa_length"):
        prepare(**race, carry_choices=True)
    with pytest.raises(InputError, match="--max_qa_length is 14; .* at least 1 and below 13"):
        prepare(**race, max_qa_length=14)
    assert content(folder / "out") == {}


def test_records_as_tensorflow_reads_them(prepare, folder):
    manifests = prepare()
    assert [m["counts"]["records"] for m in manifests] == [23, 4, 3]
    assert [m["task"]["labelled"] for m in manifests] == [True, True, False]
    spec = {feature.name: tf.io.FixedLenFeature([feature.length(16)], feature.dtype)
            for feature in FINETUNING["classification"]}
    paths = sorted(map(str, (folder / "out").glob("train.tfrecord-*-of-00005")))
    parsed = [tf.io.parse_single_example(message, spec)
              for message in tf.data.TFRecordDataset(paths)]
    assert len(parsed) == 23
    lines = (folder / "data/train.tsv").read_text(encoding="utf-8").split("\n")[1:]
    assert [int(example["label_ids"][0]) for example in parsed] == [
        int(line.endswith("not_entailment")) for line in lines]
    assert manifests[0]["counts"]["labels"]["entailment"] == sum(
        "\tentailment" in line for line in lines)
    assert "the official file 2,490" in manifests[0]["notes"][0]


def test_workers_change_nothing(prepare, folder):
    prepare("one")
    prepare("two", num_workers=2)
    assert content(folder / "one") == content(folder / "two")


def test_nothing_is_made_twice(prepare, folder, monkeypatch):
    prepare()
    before = content(folder / "out")
    monkeypatch.setattr(type(KINDS["classification"]), "encode", None)
    prepare(splits=["dev"])
    prepare()
    assert content(folder / "out") == before


def test_a_stopped_job_goes_on(prepare, folder, monkeypatch):
    prepare("whole")
    kind = type(KINDS["classification"])
    calls, encode = [], kind.encode

    def stop(*arguments):
        calls.append(arguments)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return encode(*arguments)

    monkeypatch.setattr(kind, "encode", stop)
    with pytest.raises(KeyboardInterrupt):
        prepare()
    assert set(content(folder / "out/train.progress")) == {
        "job.json", "piece-00000.json", "piece-00001.json"}
    assert not list((folder / "out").glob("*.manifest.json"))
    calls.clear()
    monkeypatch.setattr(kind, "encode", lambda *a: calls.append(a) or encode(*a))
    prepare()
    assert len(calls) == 6 - 1 + 2 + 1      # of train, after two pieces of two blocks; dev; test
    assert content(folder / "out") == content(folder / "whole")


def test_other_data_replaces_the_old(prepare, folder):
    prepare()
    (folder / "data/train.tsv").write_text(RTE + "0\ta\tb\tentailment\n", encoding="utf-8")
    assert prepare()[0]["counts"]["records"] == 1
    assert len(list((folder / "out").glob("train.tfrecord*"))) == 1


def test_the_case_is_that_of_fine_tuning(prepare, vocab_file):
    """Hugging Face's files call Google's Chinese vocabulary cased; its tokens show that it is not.
    """
    vocab_file.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "house"]))
    (vocab_file.parent / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    manifests = prepare()
    assert default_case(str(vocab_file)) and all(
        manifest["options"].get("do_lower_case", True) for manifest in manifests)


def test_another_setting_of_the_tokenizer_replaces_the_old(prepare, folder, vocab_file):
    (folder / "data/dev.tsv").write_text(RTE + "0\tcaf\u00e9\tthe\tentailment\n", encoding="utf-8")
    prepare(splits=["dev"])
    before = content(folder / "out")
    (vocab_file.parent / "tokenizer_config.json").write_text('{"strip_accents": true}')
    prepare(splits=["dev"])
    assert content(folder / "out")["dev.tfrecord"] != before["dev.tfrecord"]


def verify(path):
    verify_records.main(verify_records.VerifyRecordsFlags(input_file=[str(path)]))


WORDS = {"task": "", "task_kind": "tagging", "text_a_column": "0", "label_column": "1"}
CHOICES = {"task": "", "task_kind": "multiple_choice", "text_a_column": "a", "label_column": "l",
           "choice_columns": ["e*"]}
LABELS = {"task": "", "multi_label": True, "text_a_column": "a", "label_column": "l"}
NUMBERS = {"task": "", "task_kind": "regression", "text_a_column": "a", "label_column": "l"}


@pytest.mark.parametrize("file, content, flags, wrong", [
    ("w.txt", "the O\ntree B-X\n", WORDS, "label_ids"),
    ("c.csv", "a,e1,e2,l\nb,c,d,1\n", CHOICES, "label_ids"),
    ("l.csv", 'a,l\nb,"x,y"\nc,x\n', LABELS, "label_ids"),
    ("n.csv", "a,l\nb,-1.5\n", NUMBERS, "segment_ids")])
def test_records_of_every_kind_are_verified(prepare, folder, capsys, file, content, flags, wrong):
    (folder / "data" / file).write_text(content, encoding="utf-8")
    [manifest] = prepare(train_file=file, **flags)
    verify(folder / "out")
    assert "is sound" in capsys.readouterr().out
    path = folder / "out/train.tfrecord"
    example = tf.train.Example.FromString(next(tfrecord.read_records(path)))
    example.features.feature[wrong].int64_list.value[-1] = 9
    path.write_bytes(tfrecord.frame(example.SerializeToString()))
    with pytest.raises(InputError, match="problems"):
        verify(path)
    assert "train.tfrecord: record 0: " in capsys.readouterr().out
    assert manifest["task"]["kind"] == flags.get("task_kind", "classification")


@pytest.mark.parametrize("line, message", [
    ("9\ta\tb\tmaybe\n", r"dev.tsv, line 6: label 'maybe' is none of entailment, not_entailment"),
    ("9\ta\tb\n", r"dev.tsv, line 6 has 3 columns where there must be 4"),
])
def test_a_bad_line_leaves_nothing(prepare, folder, line, message):
    with open(folder / "data/dev.tsv", "a", encoding="utf-8") as file:
        file.write("\n" + line)
    with pytest.raises(InputError, match=message):
        prepare()
    assert not content(folder / "out")


def test_questions_have_no_records_of_their_own(prepare, monkeypatch, capsys):
    with pytest.raises(InputError, match="--task=squad_v2: --records_only is not for questions"):
        prepare(task="squad_v2")
    monkeypatch.setattr("sys.argv", ["bert-finetune", "--task=squad", "--train_file=train.json"])
    with pytest.raises(SystemExit):     # before what --train_file is not for
        create_finetuning_data.run()
    assert "--task=squad: --records_only is not for questions" in capsys.readouterr().err


def test_skipped_lines_stand_in_the_manifest(prepare, folder):
    with open(folder / "data/dev.tsv", "a", encoding="utf-8") as file:
        file.write("\n9\ta\tb\n")
    [dev] = prepare(splits=["dev"], skip_malformed_lines=True)
    assert dev["counts"]["malformed_lines"] == 1 and dev["counts"]["records"] == 4
    assert any("1 malformed line of" in note for note in dev["notes"])


def test_texts_without_words_and_many_labels_are_counted(prepare, folder, capsys):
    """As where the column of labels numbers the rows."""
    (folder / "data" / "a.csv").write_text("id;body\n" + "".join(
        f"{index};{'the' * (index > 1)}\n" for index in range(13)), encoding="utf-8")
    prepare(task="", train_file="a.csv", text_a_column="body", label_column="id")
    said = capsys.readouterr().out
    (folder / "data" / "a.tsv").write_text('id\tbody\n0\t"the ""a"""\n1\t"the"\n2\t"" or ""\n',
                                           encoding="utf-8")
    prepare(out="out2", task="", train_file="a.tsv", text_a_column="body", label_column="id")
    assert "a.tsv has 1 example with a quoted text, such as" in capsys.readouterr().out
    assert "  labels: 13, each comes 1 to 1 times\n" in said
    assert "a.csv has 2 examples without a text.\n" in said


def test_documents_stay_whole(prepare, folder):
    document = "-DOCSTART- O\n\n" + "\n".join(["a O\nthe B-X\n"] * 3)
    (folder / "data/words.txt").write_text("\n".join([document] * 4), encoding="utf-8")
    [alone] = prepare("alone", train_file="words.txt", **WORDS)
    [manifest] = prepare(document_context=True, train_file="words.txt", **WORDS)
    assert [shard["records"] for shard in alone["shards"]] == [5, 5, 2]
    assert [shard["records"] for shard in manifest["shards"]] == [6, 6]
    assert manifest["counts"]["tokens"] > alone["counts"]["tokens"]
    assert manifest["task"]["labels"] == ("O", "B-X")


@pytest.mark.parametrize("flags, message", [
    ({"task": "cloa"}, "no task 'cloa'"),
    ({"task": ""}, "--task must be given"),
    ({"label_column": "x"}, "there is no --label_column with --task"),
    *(({name: value}, f"there is no --{name} with --task") for name, value in {
        "labels": ["a", "b"], "text_b_column": "x", "choice_columns": ["x"], "labelled_test": True,
        "header": False, "multi_label": True, "task_kind": "regression"}.items()),
    ({"max_qa_length": 5}, "--max_qa_length is for multiple choice"),
    ({"carry_choices": True}, "--carry_choices is for multiple choice"),
    ({"document_context": True}, "--document_context is for tagging"),
    ({"data_dir": "absent"}, "no train.tsv in 'absent'"),
    ({"splits": ["validation"]}, "no split 'validation'; it has train, dev, test"),
    ({"max_seq_length": 3}, "--max_seq_length is 3"),
    ({"num_workers": -1}, "--num_workers is -1"),
])
def test_bad_flags(prepare, folder, flags, message):
    with pytest.raises(InputError, match=message):
        prepare(**flags)
    assert not content(folder / "out")


def test_the_command_on_own_files(folder, vocab_file):
    (folder / "mail.csv").write_text('body,folder\n"a, b",spam\nthe,ham\n', encoding="utf-8")
    command = [sys.executable, "-m", "data_prep.create_finetuning_data", f"--data_dir={folder}",
               "--train_file=mail.csv", "--text_a_column=body", f"--vocab_file={vocab_file}",
               f"--output_dir={folder}/out"]
    done = subprocess.run([*command, "--label_column=folder"], capture_output=True, text=True,
                          check=True)
    assert "train: 2 examples, 2 records" in done.stdout and "ham (1), spam (1)" in done.stdout
    again = subprocess.run([*command[:3], f"--flagfile={folder}/out/flags.txt"],
                           capture_output=True, text=True, check=True)
    assert "train: 2 examples" in again.stdout and "there already" in again.stdout
    manifest = json.loads((folder / "out/train.manifest.json").read_text(encoding="utf-8"))
    assert manifest["task"]["labels"] == ["ham", "spam"]
    assert manifest["options"]["max_seq_length"] == 128


def test_long_texts_give_a_record_for_each_window(prepare, folder):
    for split in ("train", "dev", "test"):
        path = folder / "data" / f"{split}.tsv"
        path.write_text(path.read_text().replace("the tree.", "the tree " * 20))
    counts = [made["counts"] for made in prepare(long_text="mean")]
    assert all(found["records"] > found["examples"] for found in counts)
    assert [made["counts"]["records"] for made in prepare("cut")] == [
        found["examples"] for found in counts]


def test_a_manifest_that_was_changed_is_made_again(prepare, folder, capsys):
    prepare()
    before, path = content(folder / "out"), folder / "out" / "train.manifest.json"
    found = json.loads(path.read_text())
    found["shards"][0]["records"] += 1
    path.write_text(json.dumps(found))
    capsys.readouterr()
    prepare()
    assert "train.manifest.json was changed: it counts 23 records, its shards 24" in (
        capsys.readouterr().out)
    assert content(folder / "out") == before

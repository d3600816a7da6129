"""Candidates that are ranked: pronouns by a masked LM, answers as namisan/mt-dnn does."""

import json

import numpy as np
import pytest

from bert_tf import metrics
from bert_tf.bert.objective import MaskedLM
from bert_tf.errors import InputError
from bert_tf.networks.encoder import BertEncoder
from bert_tf.objectives.candidate_lm import CandidateLM
from bert_tf.predictor import Predictor
from bert_tf.tasks.kinds import pronouns
from bert_tf.tasks.kinds.ranking import encode_candidates
from bert_tf.tasks.kinds.table import KINDS
from bert_tf.tasks.named import TASKS
from bert_tf.tasks.reading import Example, read_examples
from bert_tf.tasks.rows import Omissions
from bert_tf.tasks.saved_task import SavedTask
from bert_tf.tasks.split_records import RecordOptions, Source, SplitRecords
from bert_tf.tasks.task_flags import TaskFlags
from bert_tf.tokenization import WordpieceTokenizer, open_tokenizer
from bert_tf.tokenization.encoding import encode_pairs
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.training.learners.learner import Learner
from tests.training import tiny

TASK = TASKS["wnli-ranking"]
LINES = """index\tsentence1\tsentence2\tlabel
0\tThe drain is clogged with hair. It has to be cleaned.\tThe hair has to be cleaned.\t0
1\tJane knocked on Susan's door but she did not answer.\tSusan did not answer.\t1
2\tBob gave Tom his hat.\tBob gave Tom Bob's hat.\t1
"""


@pytest.mark.parametrize("premise, hypothesis, expected", [
    ("The drain is clogged with hair. It has to be cleaned.", "The hair has to be cleaned.",
     ("The drain is clogged with hair. ", " has to be cleaned.", "The hair")),
    ("Jane knocked on Susan's door but she did not answer.", "Susan did not answer.",
     ("Jane knocked on Susan's door but ", " did not answer.", "Susan")),
    ("Since Ann asked, Bo could not marry without his approval", "Bo could not marry without Al's "
     "approval", ("Since Ann asked, Bo could not marry without ", " approval", "Al")),
    ("It fell, so I couldn't hear it.", "I couldn't hear the bell.",
     ("It fell, so I couldn't hear ", ".", "the bell")),
    ("The cake is in the fridge. It has a lot of it.", "The fridge has a lot of it.",
     ("The cake is in the fridge. ", " has a lot of it.", "The fridge")),
    ("No pronoun is here.", "The cat ran.", ("No pronoun is here. ", "", "The cat ran."))])
def test_schema_of_a_pair(premise, hypothesis, expected):
    assert pronouns.schema_of(premise, hypothesis) == expected


@pytest.mark.parametrize("before, after, query, expected", [
    ("Jane knocked on Susan's door but ", " did not answer.", "Susan", ["Jane"]),
    ("The trophy doesn't fit into the brown suitcase because ", " is too large.", "the trophy",
     ["the brown suitcase"]),
    ("He said that Mr. Moncrieff visited Chester and ", " liked a thick cloud.", "The cloud",
     ["Mr. Moncrieff", "Chester"]),
    ("drains clog with hair, ", " stinks.", "drains", ["clog", "hair", "stinks"]),
    ("", " is.", "Bo", [])])
def test_candidates_of_a_text(before, after, query, expected):
    assert pronouns.candidates(pronouns.Schema(before, after, query)) == expected


def test_nearly_all_of_wnli_is_taken_apart(test_data):
    """The hypothesis put together again is the official one, for the whole development file."""
    lines = (test_data / "glue" / "WNLI" / "dev.tsv").read_text().splitlines()[1:]
    found = 0
    for line in lines:
        _, premise, hypothesis, _ = line.split("\t")
        schema = pronouns.schema_of(premise, hypothesis)
        assert schema.query in hypothesis and schema.query != hypothesis
        assert premise.startswith(schema.before) and premise.endswith(schema.after)
        found += bool(schema.after) and bool(pronouns.candidates(schema))
    assert found == len(lines) == 71


@pytest.fixture(name="path")
def fixture_path(tmp_path):
    (tmp_path / "dev.tsv").write_text(LINES)
    return str(tmp_path / "dev.tsv")


def test_a_line_has_an_example_for_each_candidate(path):
    found = list(read_examples(TASK, "dev", path))
    assert [(e.texts[2], e.texts[3], e.label, e.document) for e in found] == [
        ("The hair", "The drain", 1, 0), ("Susan", "Jane", 0, 1), ("Bob", "Tom", 0, 2)]


def test_masks_stand_for_the_tokens_of_both_candidates(tokenizer):
    example = Example(["ab c ", " d e.", "x y", "z"], 0)
    made, cut = TASK.kind.encode(TASK, [example], tokenizer, 48)
    ids = made["input_ids"].reshape(2, 48)
    rows = [" ".join(tokenizer.tokens(row[row > 0])) for row in ids]
    assert rows == ["[CLS] a ##b c [MASK] [MASK] d e . [SEP]", "[CLS] a ##b c [MASK] d e . [SEP]"]
    positions, tokens, weights = (made[name].reshape(2, -1) for name in CandidateLM.inputs)
    assert weights.sum(1).tolist() == [2, 1] and cut == 0
    assert positions[:, :2].tolist() == [[4, 5], [4, 0]]
    assert tokenizer.tokens(tokens[0, :2]) == ["x", "y"]
    assert tokenizer.tokens(tokens[1, :1]) == ["z"]
    # Of a long text the words around the pronoun stay.
    long = Example(["a " * 60, " b" * 60, "x", "y z"], 0)
    made, cut = TASK.kind.encode(TASK, [long], tokenizer, 48)
    row = tokenizer.tokens(made["input_ids"][0, :48])
    assert cut == 1 and row.count("a") + row.count("b") == 45 and row.index("[MASK]") == (
        made["masked_lm_positions"][0, 0])
    assert abs(row.count("a") - row.count("b")) <= 1


def test_byte_pairs_keep_the_blank_before_a_candidate(test_data):
    plain = open_tokenizer(str(test_data / "vocabs" / "roberta-base"))
    first = ["The drain is clogged. ", " stinks.", "The hair", "Bo"]
    for blank, parts in ((False, first), (True, first), (True, ["", *first[1:]]),
                         (True, ["The hair (of ", ") is Bo's.", "Bo", "it"]),
                         (True, ["I hit (", ")'s.", "Bo", "it"])):
        tokenizer = type(plain)(plain.vocabulary, add_prefix_space=blank)
        whole = tokenizer.encode(parts[0] + parts[2] + parts[1])
        made, _ = TASK.kind.encode(TASK, [Example(parts, 0)], tokenizer, 48)
        row, used = made["input_ids"][0, :48].copy(), made["masked_lm_weights"][0, :24] > 0
        row[made["masked_lm_positions"][0, :24][used]] = made["masked_lm_ids"][0, :24][used]
        assert row[1:1 + len(whole)].tolist() == whole


def model(tokenizer):
    network = BertEncoder(tiny.config(vocab_size=tokenizer.vocabulary.size,
                                      max_position_embeddings=48))
    return network, CandidateLM(network.config, 5.0, 0.4, name="masked_lm")


def test_scores_and_loss_equal_the_formulas(tokenizer):
    """The mean log probability of a masked language model, read token by token; fairseq's margin
    loss of pairs whose first candidate is right."""
    network, head = model(tokenizer)
    assert head.likelihood == ""        # its loss is no mean of tokens
    plain = MaskedLM(network.config, name="masked_lm")
    rng = np.random.default_rng(0)
    for mine, other in zip(head.weights, plain.weights, strict=True):
        other.assign(rng.normal(size=other.shape, scale=0.5))
        mine.assign(other)
    examples = [Example(["ab c ", " d e.", "x y", "z"], 0), Example(["b ", " c", "d", "e f"], 1),
                Example(["", " c", "h", "k"], 0)]
    made, _ = TASK.kind.encode(TASK, examples, tokenizer, 48)
    inputs = {name: made[name].reshape(-1, 48).astype("int32") for name in network.reads}
    outputs = network(inputs)
    found = np.array(head(outputs, made, network.embedding_table))
    every = {"masked_lm_positions": np.arange(48)[None].repeat(6, 0)}
    logits = np.array(plain(outputs, every, network.embedding_table), float)
    likely = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = []
    for row, text in enumerate(["x y", "z", "d", "e f", "h", "k"]):
        ids = tokenizer.encode(text)
        places = np.flatnonzero(inputs["input_ids"][row] == tokenizer.vocabulary.mask_id)
        wanted.append(np.mean([likely[row, place, index]
                               for place, index in zip(places, ids, strict=True)]))
    wanted = np.array(wanted).reshape(3, 2)
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    total, count = head.loss(found, *head.targets(made))
    query, other = wanted[[0, 2]].T
    assert float(count) == 2 and float(total) == pytest.approx(
        (-query + 5 * np.clip(other - query + 0.4, 0, None)).sum(), abs=1e-3)


def test_a_phrase_is_right_if_no_candidate_is_likelier(tmp_path):
    examples = [Example(["a", "b", "q", str(i)], label, line) for i, (label, line) in enumerate(
        [(0, 0), (0, 0), (1, 1), (0, 2), (0, 2)])]
    logits = np.array([[-1, -2], [-1, -1], [-3, -2], [-1, -4], [-1, -0.5]])
    found = TASK.kind.decode(TASK, {"logits": logits}, examples, {})
    assert found.tolist() == [1, 1, 0, 0, 0]
    assert TASK.kind.score(TASK, "", examples, found) == {"accuracy": pytest.approx(2 / 3)}
    # 146 lines of WNLI, of which each has two candidates.
    examples = [Example(["a", "b", "q", "x"], 0, line) for line in range(146) for _ in range(2)]
    task, source = TASK, Source(TASK, "test", "")
    paths = task.kind.write_more(str(tmp_path), source, examples,
                                 np.repeat(np.arange(146) % 2, 2), {}, True)
    assert paths == [str(tmp_path / "WNLI.tsv")]
    assert (tmp_path / "WNLI.tsv").read_text().splitlines()[:3] == [
        "index\tprediction", "0\t0", "1\t1"]


def test_a_predictor_ranks_two_candidates(tokenizer):
    network, head = model(tokenizer)
    predictor = Predictor.from_learner(Learner(network, [head]), tokenizer,
                                       SavedTask(TASK, 48, True))
    row, other = predictor([("a ", " b", "c", "d e"), ("a ", " b", "d e", "c")])
    assert row["probabilities"] == pytest.approx(other["probabilities"][::-1], abs=1e-5)
    assert {row["label"], other["label"]} == {"0", "1"}


# Answers to questions

QNNLI = TASKS["qnnli"]
HEADER = "index\tquestion\tsentence\tlabel"
YES, NO = QNNLI.labels


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *("\t".join([str(i), *row]) for i, row in enumerate(rows))])
                    + "\n")
    return str(path)


def test_texts_are_packed_as_the_originals(test_data):
    tokenizer = open_tokenizer(str(test_data / "weights" / "bert-tiny-question-classifier"), True)
    lines = (test_data / "golden" / "mtdnn" / "preparation_seed1.jsonl").read_text().splitlines()
    for row in map(json.loads, lines):
        wanted, length = (row["token_id"], row["type_id"]), row["max_seq_len"]
        if row["task"] == "qnnli":
            texts = [row["premise"], *row["hypothesis"]]
            features, _ = encode_candidates([texts], tokenizer, length)
        else:
            texts, wanted = [row["premise"], row["hypothesis"]], [[ids] for ids in wanted]
            features, _ = encode_pairs([list(filter(None, texts))], tokenizer, length,
                                       hypothesis_first=True)
        features = {name: values.reshape(-1, length) for name, values in features.items()}
        for place, used in enumerate(features["input_mask"].sum(1).astype(int)):
            assert [features[name][place, :used].astype(int).tolist() for name in (
                "input_ids", "segment_ids")] == [ids[place] for ids in wanted]


@pytest.mark.parametrize("texts, length, ids, segments", [
    (["", "a b"], 8, [2, 4, 5, 3, 3], [0, 0, 0, 0, 1]),
    (["", "a b c d"], 6, [2, 4, 5, 6, 3, 3], [0, 0, 0, 0, 0, 1]),
    (["a b c d", ""], 6, [2, 3, 4, 5, 6, 3], [0, 0, 1, 1, 1, 1])])
def test_an_empty_text_keeps_its_separator(texts, length, ids, segments):
    """namisan/mt-dnn v0.1, prepro.py, build_data and build_qnnli."""
    tokenizer = WordpieceTokenizer(Vocabulary(
        ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcd", "[MASK]"]))
    for features, _ in (encode_pairs([texts], tokenizer, length, hypothesis_first=True),
                        encode_candidates([texts], tokenizer, length)):
        used = features["input_mask"][0]
        assert features["input_ids"][0][used].tolist() == ids
        assert features["segment_ids"][0][used].astype(int).tolist() == segments


def test_two_lines_of_a_question_are_an_example(tmp_path, tokenizer):
    path = write(tmp_path / "train.tsv", [
        ("a", "b", NO), ("a", "c", YES), ("d", "e", YES), ("d", "f", NO),
        ("g", "h", YES), ("i", "j", NO),        # of other questions
        ("k", "l", YES), ("k", "m", YES)])      # with one label
    omissions = Omissions()
    found = list(read_examples(QNNLI, "train", path, omissions))
    assert [(example.texts, example.label) for example in found] == [
        (["a", "b", "c"], 1), (["d", "e", "f"], 0)]
    assert omissions.unpaired == 4
    records = SplitRecords(Source(QNNLI, "train", path), RecordOptions(8, hypothesis_first=True),
                           tokenizer, str(tmp_path))
    made, _ = records.make(1)
    assert made["counts"]["examples"] == 2 and set(made["counts"]["labels"].values()) == {2}
    assert "4 lines" in made["notes"][-1]


@pytest.mark.parametrize("split, rows, header, part", [
    ("train", [("a", "b", YES), ("c", "d", NO)], HEADER, "has no two successive lines"),
    ("train", [("a", "b", "x"), ("a", "d", NO)], HEADER, "label 'x' is none of"),
    ("test", [("a", "b"), ("c", "d")], HEADER[:-6], "line 2: the next line"),
    ("test", [("a", "b"), ("a", "d"), ("e", "f")], HEADER[:-6], "line 4: the next line")])
def test_lines_that_cannot_be_ranked_are_named(split, rows, header, part, tmp_path):
    with pytest.raises(InputError, match=part):
        list(read_examples(QNNLI, split, write(tmp_path / f"{split}.tsv", rows, header)))


def test_own_files_need_the_label_of_right_candidates(tmp_path):
    path = write(tmp_path / "own.tsv", [("a", "b", "0"), ("a", "c", "1")])
    flags = {"task_kind": "ranking", "train_file": path, "text_a_column": "question",
             "text_b_column": "sentence", "label_column": "label"}
    with pytest.raises(InputError, match="give --labels: first the label of the right candidate"):
        TaskFlags(**flags).find_sources(TaskFlags(**flags).read_task(), [])
    task = TaskFlags(**flags, labels=["1", "0"]).read_task()
    assert [example.label for example in read_examples(task, "train", path)] == [1]
    with pytest.raises(InputError, match="--both_orders"):
        TaskFlags(**flags, labels=["1", "0"], both_orders=True).find_sources(task, [])


def test_ranks_are_scored_as_ranking_and_as_classification():
    kind = KINDS["ranking"]
    logits = np.array([[0.1, 0.7, 0.3], [2.0, 1.0, 0.0], [0.0, 5.0, 6.0]])
    ranks = kind.decode(QNNLI, {"logits": logits}, [], {})
    assert ranks.tolist() == [[2, 0, 1], [0, 1, 2], [2, 1, 0]]
    found = metrics.compute(kind.own_metrics, np.array([1, 1, 0]), ranks)
    # Of 9 candidates, four are wrong: two of the second example and two of the third.
    assert found == pytest.approx({"candidate_accuracy": 5 / 9, "precision_at_1": 1 / 3,
                                   "mrr": (1 + 1 / 2 + 1 / 3) / 3})
    assert kind.submission(QNNLI, ranks[1:, :2]) == [YES, NO, NO, NO]

"""Today's encoders, as released, learn the tasks of GLUE, SNLI, CoNLL-2003 and SQuAD by heart."""

import json
import shutil

import keras
import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import bert_tf
from bert_tf import checkpoints, networks, tokenization
from bert_tf.config import CONFIGS, ModernBertConfig
from tests import sentencepieces
from tests.run_scripts.test_run_squad import VOCABULARY, squad_json

pytestmark = pytest.mark.usefixtures("eagerly")
SIZES = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 64, "max_position_embeddings": 64, "hidden_dropout_prob": 0.0,
         "attention_probs_dropout_prob": 0.0}
WORDS = VOCABULARY[5:]
SPECIAL = {"distilbert": {"pooler_type": "first_token_relu", "type_vocab_size": 1}}


def trained(path, **special):
    path.write_bytes(sentencepieces.train([" ".join(WORDS)] * 20, 200, **special))


def wordpiece(folder, special):
    peer = tokenizers.Tokenizer(models.WordPiece(
        {token: index for index, token in enumerate([*special, *WORDS])}, unk_token=special[3]))
    peer.normalizer, peer.pre_tokenizer = (
        normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    peer.decoder = decoders.WordPiece()
    peer.add_special_tokens(special)
    peer.post_processor = processors.TemplateProcessing(
        "<s> $A </s>", "<s> $A </s> </s> $B </s>", [("<s>", 0), ("</s>", 2)])
    peer.save(str(folder / "tokenizer.json"))


def byte_bpe(folder):
    """A tokenizer of ModernBERT's form."""
    peer = tokenizers.Tokenizer(models.BPE())
    peer.normalizer = normalizers.NFC()
    peer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    peer.decoder = decoders.ByteLevel()
    peer.train_from_iterator([" ".join(WORDS)] * 2, trainers.BpeTrainer(
        vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        special_tokens=["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]))
    peer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 0), ("[SEP]", 1)])
    peer.save(str(folder / "tokenizer.json"))


def bpe_of_llama(folder):
    """A tokenizer of EuroBERT's form, Llama 3's with a mask."""
    first, last = special = "<|begin_of_text|>", "<|end_of_text|>"
    peer = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    peer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(r"\p{N}{1,3}| ?\p{L}+|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    peer.decoder = decoders.ByteLevel()
    peer.train_from_iterator([" ".join(WORDS)] * 2, trainers.BpeTrainer(
        vocab_size=340, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    peer.add_special_tokens([*special, "<|mask|>"])
    peer.post_processor = processors.TemplateProcessing(
        f"{first} $A {last}", f"{first} $A {last} {first}:1 $B:1 {last}:1",
        [(token, peer.token_to_id(token)) for token in special])
    peer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": first, "eos_token": last,
        "pad_token": last, "mask_token": "<|mask|>"}))


def write_tokenizer(folder, kind):
    if kind == "modernbert":
        byte_bpe(folder)
    elif kind == "eurobert":
        bpe_of_llama(folder)
    elif kind in ("distilbert", "neobert", "nomic_bert"):
        (folder / "vocab.txt").write_text("\n".join(VOCABULARY))
    elif kind == "deberta-v2":
        trained(folder / "spm.model", pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]",
                bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
    elif kind == "mpnet":
        wordpiece(folder, ["<s>", "<pad>", "</s>", "[UNK]", "<mask>"])
    else:
        trained(folder / "sentencepiece.bpe.model")


def write_weights(model, kind):
    """Writes random weights, as Hugging Face's, beside a tokenizer."""
    (model / "config.json").write_text(json.dumps({"model_type": kind}))
    vocabulary = tokenization.open_tokenizer(str(model)).vocabulary
    values = {"vocab_size": vocabulary.size, "model_type": kind, **SIZES, **SPECIAL.get(kind, {})}
    fields = CONFIGS[kind].__dataclass_fields__
    config = CONFIGS[kind](**{name: values[name] for name in values.keys() & fields.keys()})
    networks.build(config).save(model / "model.keras")
    checkpoints.convert(model / "model.keras", model / "hf", "huggingface")
    (model / "model.keras").unlink()
    for file in (model / "hf").iterdir():
        shutil.move(file, model / file.name)


@pytest.fixture(name="data", scope="module")
def fixture_data(tmp_path_factory):
    """Official files with four examples each: what follows the first word decides the label."""
    folder = tmp_path_factory.mktemp("data")
    texts = [f"f{number} f{number} f{number + 4}" for number in range(4)]

    def write(name, header, row):
        lines = [header, *(row(number, text) for number, text in enumerate(texts))]
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("\n".join(lines) + "\n")

    for split in ("train", "dev"):
        write(f"MRPC/{split}.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
              lambda number, text: f"{number % 2}\t1\t2\t{text}\tk1 is")
        write(f"STS-B/{split}.tsv", "\t".join([
            "index", "genre", "filename", "year", "old_index", "source1", "source2", "sentence1",
            "sentence2", "score"]), lambda number, text: "\t".join(
                [str(number), *[""] * 6, text, "k1", str(number)]))
        write(f"SNLI/snli_1.0_{split}.txt", "\t".join([
            "gold_label", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse",
            "sentence2_parse", "sentence1", "sentence2", "captionID", "pairID", "label1", "label2",
            "label3", "label4", "label5"]), lambda number, text: "\t".join([
                ("neutral", "entailment", "contradiction")[number % 3], *[""] * 4, text, "k1",
                *[""] * 7]))
    for name in ("train", "testa", "testb"):
        write(f"CoNLL/eng.{name}", "-DOCSTART- -X- O O\n", lambda number, text: (
            f"f{number} X X {'I-PER' if number % 2 else 'O'}\nk1 X X I-LOC\n"))
    squad = squad_json(1)
    (folder / "squad.json").write_text(json.dumps(
        {**squad, "data": [{"title": "", "paragraphs": squad["data"][0]["paragraphs"][:2]}]}))
    return folder


@pytest.mark.parametrize("kind", ["modernbert", "deberta-v2", "xlm-roberta", "camembert", "mpnet",
                                  "distilbert", "eurobert", "neobert", "nomic_bert"])
def test_every_task_is_learned_by_heart(kind, data, tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    write_tokenizer(model, kind)
    write_weights(model, kind)
    for task, folder, score, least, steps, rate in (
            ("mrpc", "MRPC", "dev/accuracy", 1, 12, 2.5e-2),
            ("sts-b", "STS-B", "dev/pearson", 0.9, 25, 1.2e-2),
            ("snli", "SNLI", "dev/accuracy", 0.75, 25, 1.2e-2),
            ("conll2003", "CoNLL", "dev/entity_f1", 0.9, 16, 2e-2),
            ("squad", "", "squad/f1", 95, 20, 1.2e-2)):
        # Of a network these two read what MRPC does: one learns them, whose tokenizer is BERT's.
        if (task in ("sts-b", "snli")) != (kind == "distilbert") and task != "mrpc":
            continue
        # These two are RoBERTa's network with a tokenizer of their own, but for the ids the same.
        if task in {"xlm-roberta": ("conll2003",), "camembert": ("conll2003", "squad")}.get(
                kind, ()):
            continue
        flags = {"data_dir": str(data / folder)}
        if task == "squad":
            flags = {**dict.fromkeys(("train_file", "predict_file"), str(data / "squad.json")),
                     "max_query_length": 16, "doc_stride": 16}
        scores = bert_tf.finetune(
            task, model, tmp_path / task, num_workers=1, train_batch_size=4, num_train_steps=steps,
            learning_rate=rate, max_seq_length=64, warmup_proportion=0.0, **flags)
        assert scores[score] >= least, (task, scores)
    account = checkpoints.convert(tmp_path / "mrpc", tmp_path / "out", "huggingface")
    assert not any("quotation marks" in note for note in account.notes)     # as of ALBERT
    pairs = [("f1 f1 f5", "k1 is"), ("f2 f2 f6", "k1 is")]
    for path in (tmp_path / "mrpc", tmp_path / "out"):
        answers = bert_tf.Predictor(path)(pairs)
        assert [max(answer["probabilities"], key=answer["probabilities"].get)
                for answer in answers] == [answer["label"] for answer in answers]
        assert [answer["label"] in ("1", "equivalent") for answer in answers] == [True, False]


def test_a_long_text_is_read_whole(tmp_path):
    """Texts of ModernBERT are not cut at BERT's 512 tokens: what is behind them is the label."""
    def text(words, key):
        return " ".join(["f1"] * words + [key] * 100)

    keras.utils.set_random_seed(1)
    config = ModernBertConfig(
        len(VOCABULARY), 32, 2, 2, 64, max_position_embeddings=2048, local_attention=8,
        initializer_range=0.1)
    (tmp_path / "model").mkdir()
    networks.build(config).save(tmp_path / "model" / "model.keras")
    (tmp_path / "model" / "vocab.txt").write_text("\n".join(VOCABULARY))
    rows = [(text(520 + number, f"k{number % 2}"), number % 2) for number in range(4)]
    (tmp_path / "rows.tsv").write_text(
        "text\tlabel\n" + "".join(f"{words}\t{label}\n" for words, label in rows))
    files = {**dict.fromkeys(("train_file", "dev_file"), str(tmp_path / "rows.tsv")),
             "text_a_column": "text", "label_column": "label"}
    scores = bert_tf.finetune(
        files, tmp_path / "model", tmp_path / "out", max_seq_length=1500, num_train_steps=20,
        train_batch_size=4, learning_rate=5e-3, num_workers=1, warmup_proportion=0.0)
    assert scores["dev/accuracy"] == 1
    predictor = bert_tf.Predictor(tmp_path / "out")
    for length in (550, 900):
        answers = predictor([text(length, key) for key in ("k0", "k1")])
        assert [answer["label"] for answer in answers] == ["0", "1"]


@pytest.mark.parametrize("task, flags", [
    ("mrpc", {"head": "attentive", "max_seq_length": 64}),
    ("squad", {"squad_style": "electra", "max_seq_length": 64, "max_query_length": 16,
               "doc_stride": 16})])
def test_a_head_that_reads_segments_is_refused_without_them(task, flags, data, tmp_path):
    """A RoBERTa's post-processor gives both texts of a BERT the segment 0."""
    write_tokenizer(tmp_path, "mpnet")
    write_weights(tmp_path, "bert")
    files = {"mrpc": {"data_dir": str(data / "MRPC")},
             "squad": dict.fromkeys(("train_file", "predict_file"), str(data / "squad.json"))}
    with pytest.raises(bert_tf.InputError, match="by its segment, .* with --head, --sq"):
        bert_tf.finetune(task, tmp_path, tmp_path / "out", **files[task], **flags)

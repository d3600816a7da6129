"""Writes the files of tests/golden that come from $BERT_TF_TEST_DATA.

    python -m tests.pack_golden

Values are never changed: files are taken whole, or some of their arrays, or their first lines.
"""

import gzip
import io
import itertools
import json
import lzma
import os
import pathlib
import re
import shutil

import numpy as np

from tests.goldens import COMMITTED

# A file: True, all of it; a number, its first lines; a text, its arrays, without those in whose
# names this expression is found.
FILES = {
    "vocabs": {"bert-base-uncased/vocab.txt": True, "bert-base-cased/vocab.txt": True,
               "bert-base-chinese/vocab.txt": True, "albert/spiece.model": True,
               "roberta-base/vocab.json": True, "roberta-base/merges.txt": True},
    "text": {"books_sent.txt": 3000, "sample_text.txt": True},
    "golden": {
        "sample_cased_s64_d5_seed99.tfrecord": True, "sample_s128_d10_seed12345.tfrecord": True,
        "tokenization_seed1.jsonl": 400},
    "golden/albert": {
        "edge.txt": True, "edge_s64.tfrecord.gz": True, "sop_sample_s128.tfrecord.gz": True,
        "start_pieces.npz": "",
        "tokenization.jsonl.gz": 200,
        "forward_shared.npz": "", "head_mnli.npz": "", "head_squad_v2.npz": ""},
    "golden/attention_analysis": {"maps_seed1.npz": "", "segments_seed1.json.gz": True},
    "golden/distillation": {"losses_seed1.npz": ""},
    "golden/electra": {
        "edge.txt": True, "edge_s64.tfrecord.gz": True, "tokenization.jsonl.gz": 200,
        "sample_cased_nostrip_s64.tfrecord.gz": True,
        "pretraining_small_generator.npz": "_layers|_embedding_output"},
    "golden/elmo": {"bilm_forward_seed1.npz": "", "bilm_training_seed1.npz": "",
                    "mixing_seed1.npz": ""},
    "golden/ernie": {
        "forward_v1_seed1.npz": "^(initial|sequence|embedding|gradient|after_step|layer_1)"},
    "golden/ernie/hf_ernie_v1_seed1": {
        "config.json": True, "model.safetensors": True, "expected.npz": "mlm_logits"},
    "golden/fixed_patterns": {"patterns_seed1.npz": ""},
    "golden/gpt": {"finetune_seed1.npz": "^after[13]"},
    "golden/identifiability": {"matrices_seed1.npz": ""},
    "golden/ltr": {"ltr_seed1.npz": ""},
    "golden/mtdnn": {"losses_seed1.npz": "", "adamaxw_later_seed1.npz": "",
                     "san_head_k2_c2_seed1.npz": "", "train_san_seed1.npz": "^after",
                     "schedule_seed1.json": True},
    "golden/pruning": {"gates_seed1.npz": "", "what_to_prune_seed1.json": True},
    "golden/quantisation": {"q8bert_seed1.npz": "", "groupwise_seed1.npz": "",
                            "hessian_seed1.npz": ""},
    "golden/roberta": {"slices_seed1.npz": "", "packing_seed1.npz": "",
                       "masking_figures_seed1.json": True,
                       "masking_seed1.npz": "^v090", "tokenization_seed1.jsonl.gz": 150,
                       "special_seed1.jsonl": 40,
                       "forward_seed1.npz": "^logits|^after_step_2|^after.*tokens|"
                                            "^gradient.*(embed_tokens|layers.0)"},
    "golden/roberta/hf_roberta_tiny_seed1": {
        "config.json": True, "model.safetensors": True, "expected.npz": "mlm_logits"},
    "golden/sequence2015": {"sequences_seed1.jsonl": True, "autoencoder_seed1.npz": "",
                            "language_model_seed1.npz": "", "classification_seed1.npz": ""},
    "golden/spanbert": {
        "masks_seed1.npz": "", "mask_figures_seed1.json": True,
        "forward_seed1.npz": "^lm_logits|^sbo_logits|^layer_[12]|^embedding|"
                             "^after_step.*word_emb|^grad.*(layer.[01].|word_emb|decoder)"},
    "golden/stacking": {"stacked_seed1.npz": ""},
    "golden/structbert": {"forward_seed1.npz": "^attention_output|^word|^layer_[12]|"
                                               "^grad.*(layer.[01]|word_emb)"},
    "golden/t5": {
        "learning_rates.json": True, "relative_position_buckets.npz": "", "t5_lm_seed1.npz": "",
        "t5_prefix_lm_seed1.npz": "",
        "t5_v1_1_seed1.npz": "adafactor_step0|train/logits|"
                             "^(grad|adafactor_).*(shared|logits|layer_0)",
        "adafactor_factor16_seed1.npz": "",
        "features_packed_seed1.jsonl.gz": True,
        "noise_functions_seed1.jsonl.gz": True, "noise_masks_seed1.jsonl.gz": True,
        "objectives_documents.json": True, "objectives_seed1.jsonl.gz": True,
        "random_spans_helper.jsonl.gz": True, "scores_seed1.jsonl.gz": True,
        "single_denoise_seed1.jsonl.gz": True},
    "golden/theseus": {"theseus_seed1.npz": "^(?!rates)"},
    "golden/universal": {"basic_seed1.npz": "", "sinusoid_seed1.npz": "", "act_seed1.npz": "",
                         "act_accumulated_seed1.npz": ""},
    "golden/xlnet": {
        "records.json": True, "records_ids_task1.input.json.gz": True,
        "records_ids_task1.tfrecord.gz": True, "spiece.model": True, "sample_mask_seed1.npz": "",
        "split_a_and_b_seed1.jsonl.gz": True, "tokenization_seed1.jsonl.gz": 150,
        "perm_s32_seed1.npz": "", "perm_s32_window8_seed1.npz": "", "perm_s48_all_seed1.npz": "",
        "forward_uni_mem_short_seed1.npz": "out/(pos_emb|attention)",
        "finetune_classify_attn_seed1.npz": "",
        "finetune_qa_train_seed1.npz": "",
        "steps_adam_poly_seed1.npz": ""},
}


def arrays(path, left_out):
    """An uncompressed archive of some of an archive's arrays."""
    content = io.BytesIO()
    with np.load(path) as given:
        np.savez(content, **{name: given[name] for name in given.files
                            if not (left_out and re.search(left_out, name))})
    return content.getvalue()


def first(lines, count, wikipedia):
    """The first lines of a file, without those of Wikipedia, which has a licence of its own."""
    kept = (line for line in lines if not line.startswith(b"{")
            or str(json.loads(line).get("text")).strip() not in wikipedia)
    return b"".join(itertools.islice(kept, count))


def pack(source, target, choice, wikipedia):
    """Writes what is chosen of a file, compressed if it isn't yet."""
    is_gzip = source.suffix == ".gz"
    if isinstance(choice, str):
        content = arrays(source, choice)
    else:
        with (gzip.open if is_gzip else open)(source, "rb") as file:
            content = file.read() if choice is True else first(file, choice, wikipedia)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_gzip:
        target.write_bytes(gzip.compress(content, 9, mtime=0))
    elif len(content) < 4096:
        target.write_bytes(content)
    else:
        target.with_name(target.name + ".xz").write_bytes(lzma.compress(
            content, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    data = pathlib.Path(os.environ["BERT_TF_TEST_DATA"])
    with gzip.open(data / "text" / "enwiki_sent.txt.gz", "rt", encoding="utf-8") as text:
        lines = {line.strip() for line in text if line.strip()}
    for folder, files in FILES.items():
        inside = COMMITTED / folder.removeprefix("golden").removeprefix("/")
        if inside != COMMITTED:
            shutil.rmtree(inside, ignore_errors=True)
        for name, choice in files.items():
            pack(data / folder / name, inside / name, choice, lines)

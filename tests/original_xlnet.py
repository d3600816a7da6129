"""Reference files of the original's XLNet: its weights as a checkpoint, its batches as ours."""

import json

import numpy as np
import tensorflow as tf

from bert_tf.config import XLNetConfig


def weights_of(golden):
    """The arrays of the weights, by the original's names."""
    return {name[8:]: golden[name] for name in golden.files if name.startswith("weights/")}


def config_of(golden):
    """The configuration of a reference file."""
    flags = json.loads(str(golden["flags"]))
    table = golden["weights/model/transformer/word_embedding/lookup_table"]
    return XLNetConfig(vocab_size=len(table), **{name: flags[name] for name in (
        "n_layer", "d_model", "n_head", "d_head", "d_inner", "ff_activation", "untie_r", "mem_len",
        "reuse_len", "clamp_len", "dropout", "dropatt", "summary_type", "use_summ_proj")})


def write_checkpoint(folder, arrays, config):
    """A checkpoint as the original leaves it, with the file of its configuration."""
    folder.mkdir(exist_ok=True)
    tf.raw_ops.SaveV2(prefix=str(folder / "xlnet_model.ckpt"), tensor_names=list(arrays),
                      shape_and_slices=[""] * len(arrays),
                      tensors=[tf.constant(value) for value in arrays.values()])
    (folder / "xlnet_config.json").write_text(json.dumps({
        **{key: getattr(config, key) for key in (
            "n_layer", "d_model", "n_head", "d_head", "d_inner", "ff_activation", "untie_r")},
        "n_token": config.vocab_size}))


def inputs_of(golden, step):
    """The arrays of a step's batch, by the original's names."""
    prefix = f"step{step}/in/"
    return {name.removeprefix(prefix): golden[name] for name in golden.files
            if name.startswith(prefix)}


def batch_of(given, bi_data):
    """The features of a batch; the mask as it is."""
    ids = given["input_k"]
    if "target_mapping" in given:
        positions = given["target_mapping"].argmax(-1)
    else:
        positions = np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
    batch = {"input_ids": ids, "segment_ids": given["seg_id"], "perm_mask": given["perm_mask"],
             "masked_lm_positions": positions, "masked_lm_ids": given["target"]}
    if bi_data:
        batch["is_backward"] = np.repeat([[0], [1]], len(ids) // 2, axis=0)
    return {**{name: tf.constant(value, tf.int32) for name, value in batch.items()},
            "masked_lm_weights": tf.constant(given["target_mask"], tf.float32)}


def orders_of(perm_mask, half):
    """The two orders that say what a mask [B, S, S] of two halves says, int32 [B, S]."""
    batch, length, _ = perm_mask.shape
    keys, queries = np.full((2, batch, length), -1)
    for part in (slice(0, half), slice(half, length)):
        mask = perm_mask[:, part, part]
        counts = mask.sum(1)
        ranks = np.where(counts > 0, counts, -1)        # hidden from more, the later it comes
        keys[:, part] = ranks + part.start * length
        least = np.where(mask > 0, ranks[:, None], length).min(2)
        queries[:, part] = least + part.start * length
    return {"key_order": tf.constant(keys, tf.int32), "query_order": tf.constant(queries, tf.int32)}

"""Writes tests/golden: tiny checkpoints with what independent implementations make of them.

    python tests/make_golden.py huggingface   # where transformers and torch are installed
    python tests/make_golden.py official      # where tf-models-official is installed

A folder holds a checkpoint with random weights, in the format of its origin, and expected.npz:
inputs with padding and two segments, and the outputs. Neither command imports bert_tf.
"""

import json
import pathlib
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).parent / "golden"

# vocab, width, layers, heads, feed-forward, activation, positions, segments
HUGGINGFACE = {
    "hf_gelu": (101, 32, 2, 2, 64, "gelu", 40, 2),
    "hf_gelu_new": (67, 48, 1, 4, 96, "gelu_new", 24, 2),
    "hf_relu": (53, 24, 3, 3, 40, "relu", 33, 3),
    "hf_narrow_heads": (130, 64, 2, 16, 32, "gelu", 17, 2),
}
OFFICIAL = {
    "google_gelu": (101, 32, 2, 4, 80, "gelu", 40, 2),
    "google_deep": (59, 24, 4, 2, 48, "gelu", 20, 3),
}
SIZES = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
         "intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size")


def make_inputs(rng, vocab, segments, batch=3, length=16, predictions=4):
    """Integer features of `batch` examples, the later ones shorter, in two segments."""
    lengths = length - 4 * np.arange(batch)
    place = np.arange(length)
    mask = (place < lengths[:, None]).astype("int32")
    second = (place >= lengths[:, None] // 2).astype("int32")
    return {
        "input_ids": rng.integers(1, vocab, (batch, length)).astype("int32") * mask,
        "input_mask": mask,
        "segment_ids": second * mask * (segments - 1),
        "masked_lm_positions": np.stack(
            [np.sort(rng.choice(n, predictions, replace=False)) for n in lengths]).astype("int32"),
    }


def random_value(rng, name, shape):
    """Values far enough from zero, and from the usual ones, that a mistake shows."""
    is_scale = "LayerNorm" in name and name.endswith(("weight", "gamma"))
    return (is_scale + rng.normal(0, 0.2, shape)).astype("float32")


def huggingface(name, sizes):
    """A folder in the format of Hugging Face, with the outputs of BertForPreTraining."""
    import torch
    import transformers

    rng = np.random.default_rng(len(name))
    config = transformers.BertConfig(**dict(zip(SIZES, sizes)), attn_implementation="eager")
    model = transformers.BertForPreTraining(config).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(torch.from_numpy(random_value(rng, key, tuple(parameter.shape))))
    inputs = make_inputs(rng, config.vocab_size, config.type_vocab_size)
    with torch.no_grad():
        out = model(torch.from_numpy(inputs["input_ids"]).long(),
                    attention_mask=torch.from_numpy(inputs["input_mask"]).long(),
                    token_type_ids=torch.from_numpy(inputs["segment_ids"]).long(),
                    output_hidden_states=True, output_attentions=True)
        pooled = model.bert.pooler(out.hidden_states[-1])
    folder = GOLDEN / name
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    rows = np.arange(len(inputs["input_ids"]))[:, None]
    np.savez_compressed(
        folder / "expected.npz", **inputs,
        embedding_output=out.hidden_states[0].numpy(),
        layer_outputs=np.stack([h.numpy() for h in out.hidden_states[1:]]),
        attention_probs=np.stack([a.numpy() for a in out.attentions]),
        pooled_output=pooled.numpy(),
        masked_lm=out.prediction_logits.numpy()[rows, inputs["masked_lm_positions"]],
        next_sentence=out.seq_relationship_logits.numpy())


def official(name, sizes):
    """A folder in Google's format, with the outputs of the Model Garden's BertPretrainerV2."""
    import tensorflow as tf
    import tf_keras
    from official.nlp.modeling import layers, models, networks

    values = dict(zip(SIZES, sizes))
    width, heads = values["hidden_size"], values["num_attention_heads"]
    rng = np.random.default_rng(len(name))

    def gelu(x):
        return tf_keras.activations.gelu(x, approximate=True)

    encoder = networks.BertEncoderV2(
        vocab_size=values["vocab_size"], hidden_size=width,
        num_layers=values["num_hidden_layers"], num_attention_heads=heads,
        max_sequence_length=values["max_position_embeddings"],
        type_vocab_size=values["type_vocab_size"], inner_dim=values["intermediate_size"],
        inner_activation=gelu)
    model = models.BertPretrainerV2(
        encoder, mlm_activation=gelu,
        classification_heads=[layers.ClassificationHead(width, 2, name="next_sentence")])
    inputs = make_inputs(rng, values["vocab_size"], values["type_vocab_size"])
    theirs = {"input_word_ids": inputs["input_ids"], "input_mask": inputs["input_mask"],
              "input_type_ids": inputs["segment_ids"],
              "masked_lm_positions": inputs["masked_lm_positions"]}
    model(theirs)

    saved = {}

    def give(variable, google, shape=None, fold=lambda x: x):
        """Draws a value of Google's shape, saves it, gives it to the Model Garden's variable."""
        if google not in saved:
            saved[google] = random_value(rng, google, tuple(shape or variable.shape))
        variable.assign(np.reshape(fold(saved[google]), variable.shape))

    def give_pair(layer, google, ends=("kernel", "bias"), shapes=((), ())):
        for variable, end, shape in zip(layer.weights, ends, shapes):
            give(variable, f"{google}/{end}", shape)

    norm = ("gamma", "beta")
    give(encoder._embedding_layer.embeddings, "bert/embeddings/word_embeddings")
    give(encoder._type_embedding_layer.embeddings, "bert/embeddings/token_type_embeddings")
    give(encoder._position_embedding_layer.weights[0], "bert/embeddings/position_embeddings")
    give_pair(encoder._embedding_norm_layer, "bert/embeddings/LayerNorm", norm)
    for i, block in enumerate(encoder._transformer_layers):
        scope = f"bert/encoder/layer_{i}"
        attention = block._attention_layer
        for part in ("query", "key", "value"):
            give_pair(getattr(attention, f"_{part}_dense"), f"{scope}/attention/self/{part}",
                      shapes=((width, width), (width,)))
        give_pair(attention._output_dense, f"{scope}/attention/output/dense",
                  shapes=((width, width), (width,)))
        give_pair(block._attention_layer_norm, f"{scope}/attention/output/LayerNorm", norm)
        give_pair(block._intermediate_dense, f"{scope}/intermediate/dense")
        give_pair(block._output_dense, f"{scope}/output/dense")
        give_pair(block._output_layer_norm, f"{scope}/output/LayerNorm", norm)
    head = model.classification_heads[0]
    give_pair(encoder._pooler_layer, "bert/pooler/dense")
    give_pair(head.dense, "bert/pooler/dense")
    give(head.out_proj.kernel, "cls/seq_relationship/output_weights", (2, width), np.transpose)
    give(head.out_proj.bias, "cls/seq_relationship/output_bias")
    give_pair(model.masked_lm.dense, "cls/predictions/transform/dense")
    give_pair(model.masked_lm.layer_norm, "cls/predictions/transform/LayerNorm", norm)
    give(model.masked_lm.bias, "cls/predictions/output_bias")

    heads_out = model(theirs)
    out = encoder(theirs)
    folder = GOLDEN / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bert_config.json").write_text(json.dumps(values, indent=2) + "\n")
    # What a training run of the original leaves beside the weights.
    saved["global_step"] = np.int64(7)
    saved["cls/predictions/output_bias/adam_m"] = np.zeros(values["vocab_size"], "float32")
    tf.raw_ops.SaveV2(prefix=str(folder / "bert_model.ckpt"), tensor_names=list(saved),
                      shape_and_slices=[""] * len(saved), tensors=list(saved.values()))
    (folder / "checkpoint").write_text('model_checkpoint_path: "/gone/model.ckpt-7"\n')
    np.savez_compressed(
        folder / "expected.npz", **inputs,
        layer_outputs=np.stack([x.numpy() for x in out["encoder_outputs"]]),
        pooled_output=out["pooled_output"].numpy(),
        masked_lm=heads_out["mlm_logits"].numpy(),
        next_sentence=heads_out["next_sentence"].numpy())


def main(kind):
    make, cases = {"huggingface": (huggingface, HUGGINGFACE),
                   "official": (official, OFFICIAL)}[kind]
    for name, sizes in cases.items():
        make(name, sizes)
        print(name)


if __name__ == "__main__":
    main(sys.argv[1])

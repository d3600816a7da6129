"""Hugging Face's files of each `model_type`: a row of `MODELS` each, with the names of tensors in
transformers' PyTorch classes."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bert_tf.checkpoints import names
from bert_tf.checkpoints.rules import SELF, encoder_rows
from bert_tf.checkpoints.weights import Weights
from bert_tf.config import ALBERT
from bert_tf.models.mobilebert import weights as mobilebert
from bert_tf.models.nomicbert import weights as nomicbert

# Endings of rows, of PyTorch's names.
TABLE = (("", ".weight"),)
DENSE = (("/kernel", ".weight", "transpose"), ("/bias", ".bias"))
NORM = (("/gamma", ".weight"), ("/beta", ".bias"))
KINDS = {"table": TABLE, "norm": NORM, "dense": DENSE}


@dataclasses.dataclass(frozen=True)
class Model:
    """The files of a `model_type`; rows are as in `rules.Format`.

    Attributes:
        classes, prefix: of its class names; of the encoder's tensors in files with a head.
        encoder, heads: rows of the encoder and the pooler, without the prefix; of heads that are
            not classifiers.
        pretraining: (end of a class's name, its heads) of classes without a task; the first whose
            heads are all present is written.
        classifier: by the end of a class's name, the two layers of its classifier; the first one
            replaces the pooler. Other classes have one layer, after the pooler.
        with_hidden: the files whose classifiers have a hidden layer, where others have none.
        positions_after_padding: whether the positions up to `pad_token_id` are unused.
        keys: fields of the configuration in files of this type, in addition to `KEYS`.
        projection: the layer after the embeddings, where files hold it even for equal widths.
        fixed: settings with their only possible value: any other is another network.
        defaults, written: values of fields that a file lacks; further keys that files get.
        names: {field of the configuration: another key of files}; "" where files have no key.
        other_names: the same, of the original's files: where a file has no key of transformers.
        others: heads that its classes build in another way.
        copies: further tensors that may be copies of the embeddings, and are never written.
        kin: kinds of BERT with files of this type, apart from a key of `config.json`.
        ignored: (pattern, reason) of further tensors that no encoder needs, see `rules.Format`.
        exact_gelu: whether its masked LM's head has the exact GELU whatever `hidden_act` is.
        causal: the end of the class name of a left-to-right language model, or "".
        check: raises InputError for `Weights` whose network transformers can't build; None for
            networks like BERT's.
        older: the files whose masked LM has other names, and may have an output matrix.
        spellings: patterns in the names of some files, and what the rows have for them.
        take: changes the configuration and the tensors of a file, as they are in it.
        complete: changes the tensors, by the names in rows, in place.
        give: undoes `take` and `complete` in the values and the configuration of a file.
        differences: sentences on what transformers computes differently with a configuration.
    """

    classes: str
    prefix: str
    encoder: tuple
    heads: tuple
    pretraining: tuple[tuple[str, set[str]], ...] = (("ForMaskedLM", {"masked_lm"}),)
    classifier: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)
    with_hidden: "Model | None" = None
    pad_token_id: int = 0
    positions_after_padding: bool = False
    keys: tuple[str, ...] = ()
    projection: str = ""
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=lambda: _FIXED)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    other_names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    written: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    others: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    kin: tuple[str, ...] = ()
    ignored: tuple[tuple[str, str], ...] = ()
    exact_gelu: bool = False
    causal: str = ""
    check: Callable[[Weights], None] | None = None
    older: "Model | None" = None
    spellings: Mapping[str, str] = dataclasses.field(default_factory=dict)
    take: Callable = lambda values, tensors, file: (values, tensors)
    complete: Callable = lambda tensors: None
    give: Callable = lambda values, described, weights: (values, described)
    differences: Callable = lambda config: ()

    @property
    def output_weights(self) -> str:
        """The output matrix of the masked LM, which may be a copy of the embeddings."""
        return f"{self._of_masked_lm('output_weights')}.weight"

    @property
    def output_biases(self) -> tuple[str, ...]:
        """The bias of the masked LM, then another name of a copy of it, if there is one."""
        copy = f"{self._of_masked_lm('output_weights')}.bias"
        return tuple(dict.fromkeys((self._of_masked_lm("output_bias"), copy)))

    def _of_masked_lm(self, name):
        return next(theirs for ours, theirs, _ in self.heads if ours == f"masked_lm/{name}")


_FIXED = {"position_embedding_type": "absolute", "add_cross_attention": False}
# Values that files of StructBERT's code must have, where they have the keys.
_STRUCTBERT = {"emb_size": -1, "transformer_type": "original", "attention_type": "self",
               **dict.fromkeys(("rezero", "pre_ln", "squeeze_excitation", "transfer_matrix",
                                "set_mask_zero", "roberta_style"), False)}
# Fields of the configuration that every type has, under the same names.
KEYS = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
        "intermediate_size", "hidden_act", "hidden_dropout_prob", "attention_probs_dropout_prob",
        "max_position_embeddings", "type_vocab_size", "initializer_range", "layer_norm_eps")


def _encoder(parts, layer="encoder.layer.{i}."):
    return encoder_rows(KINDS, (f"embeddings.{name}" for name in names.EMBEDDINGS), layer, parts)


_PARTS = tuple(name.replace("/", ".") for name in names.LAYER)
_ENCODER = (*_encoder(_PARTS), ("pooler/dense", "pooler.dense", DENSE))


def _masked_lm(dense, norm, bias, decoder):
    return (("masked_lm/transform/dense", dense, DENSE),
            ("masked_lm/transform/LayerNorm", norm, NORM),
            ("masked_lm/output_bias", bias, SELF),
            ("masked_lm/output_weights", decoder, TABLE))


_ANSWER_SPAN = ("answer_span/dense", "qa_outputs", DENSE)
# SpanBERT's head, which transformers lacks.
_PAIRS = "cls.pair_target_predictions"
_SPAN_BOUNDARY = (
    ("span_boundary/position_embeddings", f"{_PAIRS}.position_embeddings", TABLE),
    *((f"span_boundary/{ours}_{i}", f"{_PAIRS}.mlp_layer_norm.{theirs}{i + 1}", endings)
      for i in range(2) for ours, theirs, endings in (("dense", "linear", DENSE),
                                                      ("LayerNorm", "layer_norm", NORM))),
    ("span_boundary/output_bias", f"{_PAIRS}.bias", SELF))
_HEADS = (
    *_masked_lm("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                "cls.predictions.bias", "cls.predictions.decoder"),
    ("next_sentence/dense", "cls.seq_relationship", DENSE), _ANSWER_SPAN)
_BERT_CLASSES = (("ForPreTraining", {"masked_lm", "next_sentence"}), ("ForMaskedLM", {"masked_lm"}),
                 ("ForNextSentencePrediction", {"next_sentence"}))

_TWO_LAYERS = {"SequenceClassification": ("classifier.dense", "classifier.out_proj")}

# MobileBertConfig of transformers.
_MOBILEBERT = {
    "embedding_size": 128, "trigram_input": True, "use_bottleneck": True,
    "intra_bottleneck_size": 128, "use_bottleneck_attention": False,
    "key_query_shared_bottleneck": True, "num_feedforward_networks": 4,
    "normalization_type": "no_norm", "classifier_activation": True}

MODELS = {
    "bert": Model(
        "Bert", "bert.", _ENCODER,
        (*_HEADS, *_SPAN_BOUNDARY), _BERT_CLASSES,
        fixed=_FIXED | _STRUCTBERT, defaults={"type_vocab_size": 2},
        copies=(f"{_PAIRS}.decoder.weight",), kin=("spanbert", "structbert"),
        causal="LMHeadModel"),
    "ernie": Model(
        "Ernie", "ernie.",
        (*_ENCODER, ("embeddings/task_type_embeddings", "embeddings.task_type_embeddings", TABLE)),
        _HEADS, _BERT_CLASSES,
        keys=("use_task_id", "task_type_vocab_size"), defaults={"type_vocab_size": 2},
        ignored=((r"(\w+\.)?embeddings\.task_type_embeddings\.weight",
                  "a table of tasks that use_task_id leaves unused"),)),
    # fairseq's RoBERTa: no next-sentence prediction, and padding takes up the first positions.
    "roberta": Model(
        "Roberta", "roberta.", _ENCODER,
        (*_masked_lm("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"),
         _ANSWER_SPAN),
        classifier=_TWO_LAYERS, pad_token_id=1,
        positions_after_padding=True, defaults={"type_vocab_size": 2}, exact_gelu=True),
    "albert": Model(
        "Albert", "albert.", (
            *_encoder(("attention.query", "attention.key", "attention.value", "attention.dense",
                       "attention.LayerNorm", "ffn", "ffn_output", "full_layer_layer_norm"),
                      "encoder.albert_layer_groups.{g}.albert_layers.{j}."),
            ("embeddings_project", "encoder.embedding_hidden_mapping_in", DENSE),
            ("pooler/dense", "pooler", DENSE)),
        (*_masked_lm("predictions.dense", "predictions.LayerNorm", "predictions.bias",
                     "predictions.decoder"),
         ("next_sentence/dense", "sop_classifier.classifier", DENSE), _ANSWER_SPAN),
        _BERT_CLASSES[:2],
        keys=("embedding_size", "num_hidden_groups", "inner_group_num"),
        projection="encoder.embedding_hidden_mapping_in",
        defaults={**ALBERT, "hidden_act": "gelu_new"}),
    # No segments. Only the classifiers of sequences and of choices have a pooler, with ReLU.
    "distilbert": Model(
        "DistilBert", "distilbert.", tuple(_encoder(
            ("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
             "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
            "transformer.layer.{i}.")),
        (("pooler/dense", "pre_classifier", DENSE),
         *_masked_lm("vocab_transform", "vocab_layer_norm", "vocab_projector.bias",
                     "vocab_projector"), _ANSWER_SPAN),
        names={"hidden_size": "dim", "num_hidden_layers": "n_layers",
               "num_attention_heads": "n_heads", "intermediate_size": "hidden_dim",
               "hidden_act": "activation", "hidden_dropout_prob": "dropout",
               "attention_probs_dropout_prob": "attention_dropout", "type_vocab_size": "",
               "layer_norm_eps": ""},
        defaults={"pooler_type": "first_token_relu", "type_vocab_size": 1, "hidden_size": 768,
                  "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 3072},
        # Positions are read from the file, whatever made them.
        written={"sinusoidal_pos_embds": False}),
    # Discriminator and generator are two models.
    "electra": Model(
        "Electra", "electra.",
        (*_ENCODER[:-1], ("embeddings_project", "embeddings_project", DENSE)),
        (*_masked_lm("generator_predictions.dense", "generator_predictions.LayerNorm",
                     "generator_lm_head.bias", "generator_lm_head"),
         ("replaced_token/dense", "discriminator_predictions.dense", DENSE),
         ("replaced_token/dense_1", "discriminator_predictions.dense_prediction", DENSE),
         _ANSWER_SPAN),
        (("ForPreTraining", {"replaced_token"}), ("ForMaskedLM", {"masked_lm"})),
        keys=("embedding_size",),
        defaults={"pooler_type": "first_token", "type_vocab_size": 2, "embedding_size": 128,
                  "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
        others=("classification", "multi_label", "regression", "multiple_choice"),
        exact_gelu=True),
    "mobilebert": Model(
        "MobileBert", "mobilebert.", mobilebert.encoder_rows(
            lambda name: name.replace("layer_{i}", "layer.{i}").replace(
                "ffn_layer_", "ffn.").replace("/", "."), KINDS),
        (*_HEADS, ("masked_lm/extra/output_weights", "cls.predictions.dense",
                   (("", ".weight", "transpose"),))), _BERT_CLASSES,
        keys=(*_MOBILEBERT, "as_in_transformers"), fixed={}, defaults=_MOBILEBERT | {
            "as_in_transformers": True,
            "hidden_size": 512, "num_hidden_layers": 24, "num_attention_heads": 4,
            "intermediate_size": 512, "hidden_act": "relu", "hidden_dropout_prob": 0.0,
            "type_vocab_size": 2},
        check=mobilebert.check_huggingface, complete=mobilebert.join_output,
        give=mobilebert.give, differences=mobilebert.notes,
        ignored=(*mobilebert.UNUSED.items(), mobilebert.EMPTY)),
}
# The classifiers of transformers' ELECTRA; the original's have no hidden layer.
MODELS["electra"] = dataclasses.replace(MODELS["electra"], with_hidden=dataclasses.replace(
    MODELS["electra"], others=(), classifier={
        **_TWO_LAYERS, "MultipleChoice": ("sequence_summary.summary", "classifier")},
    defaults=MODELS["electra"].defaults | {"pooler_type": "first_token_gelu"},
    fixed=_FIXED | {"summary_type": "first", "summary_activation": "gelu"}))
# RoBERTa's network and names, in classes of their own.
MODELS |= {kind: dataclasses.replace(MODELS["roberta"], classes=classes) for kind, classes in (
    ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))}
MODELS["mpnet"] = dataclasses.replace(
    MODELS["roberta"], classes="MPNet", prefix="mpnet.", encoder=(
        *_encoder(("attention.attn.q", "attention.attn.k", "attention.attn.v", "attention.attn.o",
                   "attention.LayerNorm", "intermediate.dense", "output.dense",
                   "output.LayerNorm")),
        ("encoder/relative_attention_bias/weight", "encoder.relative_attention_bias.weight", SELF),
        ("pooler/dense", "pooler.dense", DENSE)),
    # Positions are counted by tokens other than token 1, whatever `pad_token_id` is.
    fixed={"pad_token_id": 1}, keys=("relative_attention_num_buckets",),
    names={"type_vocab_size": ""}, defaults={"type_vocab_size": 1, "vocab_size": 30527})
# The classes for sequences and choices have a pooler outside of the encoder.
_DEBERTA = "lm_predictions.lm_head"
MODELS["deberta-v2"] = Model(
    "DebertaV2", "deberta.", (
        *_encoder((*(f"{part}_proj" for part in _PARTS[:3]), *_PARTS[3:])),
        *((f"encoder/layer_{{i}}/attention/self/{part}",
           f"encoder.layer.{{i}}.attention.self.{part}_proj", DENSE)
          for part in ("pos_key", "pos_query")),
        ("embeddings/embed_proj", "embeddings.embed_proj", DENSE),
        ("encoder/rel_embeddings/weight", "encoder.rel_embeddings.weight", SELF),
        ("encoder/rel_embeddings/LayerNorm", "encoder.LayerNorm", NORM),
        ("encoder/conv", "encoder.conv.conv", DENSE),
        ("encoder/conv/LayerNorm", "encoder.conv.LayerNorm", NORM)),
    (("pooler/dense", "pooler.dense", DENSE),
     *((f"replaced_token_in_context/{ours}", f"mask_predictions.{theirs}", endings)
       for ours, theirs, endings in (("dense", "dense", DENSE), ("LayerNorm", "LayerNorm", NORM),
                                     ("dense_1", "classifier", DENSE))),
     *_masked_lm(f"{_DEBERTA}.dense", f"{_DEBERTA}.LayerNorm", f"{_DEBERTA}.bias",
                 f"{_DEBERTA}.decoder"), _ANSWER_SPAN),
    keys=("embedding_size", "relative_attention", "max_relative_positions", "position_buckets",
          "pos_att_type", "share_att_key", "norm_rel_ebd", "position_biased_input",
          "enhanced_mask_decoder", "conv_kernel_size", "conv_groups", "conv_act",
          "pooler_hidden_act"),
    fixed={}, written={"legacy": False},
    defaults={"vocab_size": 128100, "hidden_size": 1536, "num_hidden_layers": 24,
              "num_attention_heads": 24, "intermediate_size": 6144, "type_vocab_size": 0,
              "layer_norm_eps": 1e-7, "relative_attention": False, "pos_att_type": ()},
    ignored=((r"(\w+\.)?embeddings\.position_embeddings\.weight",
              "a table of positions that the encoder leaves unused"),))
MODELS["deberta-v2"] = dataclasses.replace(MODELS["deberta-v2"], older=dataclasses.replace(
    MODELS["deberta-v2"], written={"legacy": True}, heads=(*(
        row for row in MODELS["deberta-v2"].heads if _DEBERTA not in row[1]), *_HEADS[:4])))
# The original's other networks have other values; transformers' have not these keys.
_NOMIC = {"num_experts": 0, "activation_function": "swiglu", "rotary_emb_fraction": 1.0,
          "rotary_emb_scale_base": None, **dict.fromkeys((
              "prenorm", "parallel_block", "causal", "use_rms_norm", "norm_mlp", "rotary_head_dim",
              "rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"), False)}
MODELS["nomic_bert"] = Model(
    "NomicBert", nomicbert.PREFIX, (
        *_ENCODER[:2], _ENCODER[-1], ("embeddings/LayerNorm", "emb_ln", NORM),
        *((f"encoder/layer_{{i}}/{ours}", f"encoder.layers.{{i}}.{theirs}", endings)
          for ours, theirs, endings in (
              ("attention/self/qkv", "attn.Wqkv", DENSE),
              ("attention/output/dense", "attn.out_proj", DENSE),
              ("attention/output/LayerNorm", "norm1", NORM),
              ("intermediate/dense", "mlp.[fc12,fc11]", DENSE),
              ("output/dense", "mlp.fc2", DENSE), ("output/LayerNorm", "norm2", NORM)))),
    (*_masked_lm("cls.predictions.transform.dense", "cls.predictions.transform.layer_norm",
                 "cls.predictions.bias", "cls.predictions.decoder"), _ANSWER_SPAN),
    keys=("rope_theta", "rope_parameters", "rotary_scaling_factor", "max_trained_positions"),
    fixed={**_NOMIC, "rope_scaling": None}, written=_NOMIC, defaults={"hidden_act": "silu"},
    names={"max_position_embeddings": "n_positions"},
    other_names={"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
                 "num_attention_heads": "n_head", "intermediate_size": "n_inner",
                 "hidden_dropout_prob": "resid_pdrop", "attention_probs_dropout_prob": "attn_pdrop",
                 "layer_norm_eps": "layer_norm_epsilon", "rope_theta": "rotary_emb_base"},
    # Of the original's masked LM, and of files that transformers 5 writes with its own names.
    spellings={r"^bert\.": "nomic_bert.", r"(?<!encoder\.)layers\.": "encoder.layers.",
               r"embeddings\.LayerNorm": "emb_ln", "^emb_ln": "nomic_bert.emb_ln",
               r"self_attn\.\[q,k,v\]_proj": "attn.Wqkv", r"self_attn\.o_proj": "attn.out_proj",
               r"mlp\.\[gate,up\]_proj": "mlp.[fc12,fc11]", r"mlp\.down_proj": "mlp.fc2",
               "post_attention_layernorm": "norm1", "post_mlp_layernorm": "norm2"},
    take=nomicbert.take, complete=nomicbert.add_biases, give=nomicbert.give)
_MODEL_OF = {kind: model for name, model in MODELS.items() for kind in (name, *model.kin)}


def model_of(weights: Weights) -> Model | None:
    """The row of the files that hold a network, or None."""
    model = _MODEL_OF.get(weights.config.model_type)
    if model and model.with_hidden and weights.config.has_pooler:
        return model.with_hidden
    # Only the older head predicts from embeddings of another width.
    if model and model.older and ("masked_lm/output_weights" in weights.tensors
                                  or weights.config.embedding_size or (
            weights.origin and model.older.output_biases[0] in weights.origin.tensors)):
        return model.older
    return model


def model_in(kind: str, tensors: Collection[str]) -> Model:
    """The row of files of the `model_type` `kind` with these tensors."""
    model = MODELS[kind]
    hidden = model.with_hidden
    if hidden and any(f"{layers[0]}.weight" in tensors for layers in hidden.classifier.values()):
        return hidden
    if model.older and model.older.output_biases[0] in tensors:
        return model.older
    return model

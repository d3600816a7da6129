"""The kinds of pre-training, a row each. A row may give a flag another default."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert_tf.errors import InputError, choose_from
from bert_tf.files.reading import Values, check_shape
from bert_tf.flags import applicable
from bert_tf.models.modernbert.config import ModernBertConfig
from bert_tf.models.t5.config import T5_PRESETS
from bert_tf.models.t5.corruption import Denoising
from bert_tf.recipes.recipe import MaskTokens, Recipe, Segments, Task, Term

_BLOCKS = Segments("doc_sentences")
_NEXT = MaskTokens("next_token", dynamic=True)
_NO_DROPOUT = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


def _size(layers: int, width: int, heads: int, **values: Any) -> dict[str, Any]:
    return {"num_hidden_layers": layers, "hidden_size": width, "num_attention_heads": heads,
            "intermediate_size": 4 * width, **values}


_ALBERT = {"base": _size(12, 768, 12), "large": _size(24, 1024, 16), "xlarge": _size(24, 2048, 16),
           "xxlarge": _size(12, 4096, 64, **_NO_DROPOUT)}

# google-research mobilebert/: MobileBERT; MobileBERT with GELU and layer norm, which are slower;
# the smaller one; and the teacher, IB-BERT.
_THIN: dict[str, Any] = {"num_hidden_layers": 24, "hidden_size": 512, "num_attention_heads": 4,
         "embedding_size": 128, "intra_bottleneck_size": 128, "intermediate_size": 512}
_MOBILEBERT: dict[str, dict[str, Any]] = {
    "mobilebert": _THIN,
    "mobilebert_plain": _THIN | {"hidden_act": "gelu", "normalization_type": "layer_norm"},
    "mobilebert_tiny": _THIN | {"use_bottleneck_attention": True, "num_feedforward_networks": 2,
                                "key_query_shared_bottleneck": False},
    "ib_bert": _THIN | {
        "intra_bottleneck_size": 1024, "intermediate_size": 4096, "hidden_act": "gelu",
        "key_query_shared_bottleneck": False, "num_feedforward_networks": 1,
        "normalization_type": "layer_norm", "classifier_activation": True,
        "hidden_dropout_prob": 0.1}}

# microsoft/DeBERTa experiments/language_model: deberta_xlarge.json and the others, mlm.sh.
_DEBERTA: dict[str, Any] = {
    "model_type": "deberta-v2", "type_vocab_size": 0, "position_biased_input": False,
    "position_buckets": 256, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
_CONVOLUTION = {"conv_kernel_size": 3, "conv_act": "gelu_erf"}

_SMALL = {str(width): _size(12, width, 12) for width in (48, 96, 192)}

# tensor2tensor's universal_transformer_{tiny,small,base}.
_UNIVERSAL = {"tiny": _size(8, 128, 4), "small": _size(6, 512, 8), "base": _size(6, 1024, 16)}

RECIPES = {recipe.name: recipe for recipe in (
    Recipe("bert", "1810.04805", also=("EuroBert", "NomicBert")),
    Recipe("bert_wwm", "1906.08101", corruption=MaskTokens(units="words")),
    Recipe("roberta", "1907.11692", "byte_bpe",
           segments=Segments("full_sentences", sentence_ends=True),
           corruption=MaskTokens("roberta", replace_from="words", dynamic=True),
           terms=(Term("MaskedLM"), Term("SentencePrediction", optional=True)),
           # fairseq's settings for its first released recipe, of Base.
           defaults={"dupe_factor": 1, "max_seq_length": 512, "optimizer": "fairseq_adam",
                     "learning_rate_schedule": "roberta", "learning_rate": 5e-4,
                     "train_batch_size": 2048, "num_train_steps": 125_000,
                     "num_warmup_steps": 10_000},
           sizes={"model_type": "roberta", "type_vocab_size": 1, "hidden_act": "gelu_erf",
                  "layer_norm_eps": 1e-5}),
    Recipe("electra", "2003.10555", tokenizer_settings={"drop_category_c": True},
           segments=Segments("electra"), corruption=MaskTokens(
               "electra", shares=(0.85, 0.0), dynamic=True),
           terms=(Term("MaskedLM", network="generator"), Term("ReplacedToken", 50.0)),
           learner="models.electra.learner.Electra",
           settings=("models.electra.settings.GeneratorSettings",),
           defaults={"dupe_factor": 1, "short_seq_prob": 0.05, "learning_rate": 5e-4,
                     "train_batch_size": 128, "num_train_steps": 1_000_000,
                     "num_warmup_steps": 10_000, "optimizer": "bert_adamw",
                     "learning_rate_schedule": "electra"},
           sizes={"model_type": "electra", "hidden_act": "gelu_erf",
                  "pooler_type": "first_token"},
           presets={"small": _size(12, 256, 4, embedding_size=128)}),
    Recipe("albert", "1909.11942", "sentencepiece", segments=Segments(negatives="swapped"),
           corruption=MaskTokens("albert", "words"),
           terms=(Term("MaskedLM"),
                  Term("SentencePrediction", options={"metrics_name": "sentence_order"})),
           defaults={"dupe_factor": 40, "max_seq_length": 512, "learning_rate": 0.00176,
                     "train_batch_size": 4096, "num_train_steps": 125_000,
                     "num_warmup_steps": 3_125, "optimizer": "albert_lamb"},
           sizes={"model_type": "albert", "embedding_size": 128, "num_hidden_groups": 1},
           # The second releases were trained without dropout.
           presets=_ALBERT | {f"{name}_v2": size | _NO_DROPOUT for name, size in _ALBERT.items()}),
    # AnswerDotAI/ModernBERT yamls/modernbert/modernbert-base-pretrain.yaml, the first phase: 1,719
    # billion tokens, of which the rate rises in 3; theta is 10,000 everywhere. The rate here falls
    # at the end, as in its third phase.
    Recipe("modernbert", "2412.13663", "tokenizer_json", segments=Segments("document_runs"),
           corruption=MaskTokens("modernbert", dynamic=True),
           instances="models.modernbert.instances.PackedRows", network="ModernBert",
           terms=(Term("MaskedLM"),),
           defaults={"dupe_factor": 1, "max_seq_length": 1024, "masked_lm_prob": 0.3,
                     "optimizer": "stable_adamw", "learning_rate_schedule": "warmup_stable_decay",
                     "learning_rate": 8e-4, "train_batch_size": 4608, "num_train_steps": 364_000,
                     "num_warmup_steps": 636},
           sizes={"model_type": "modernbert", "global_rope_theta": 10_000.0},
           # The second phase.
           presets={f"{name}_8192": {**size, "global_rope_theta": 160_000.0}
                    for name, size in ModernBertConfig.own_presets.items()}),
    Recipe("spanbert", "1907.10529", segments=Segments("doc_blocks"), corruption=MaskTokens(
               "spanbert", "words", replace_from="corpus", dynamic=True),
           terms=(Term("MaskedLM"),
                  Term("SpanBoundary", of_records={"max_targets": "max_pair_targets"})),
           defaults={"do_lower_case": False, "dupe_factor": 1, "max_seq_length": 512,
                     "optimizer": "spanbert_adam", "learning_rate_schedule": "spanbert",
                     "learning_rate": 1e-4, "train_batch_size": 256,
                     "num_train_steps": 2_400_000, "num_warmup_steps": 10_000},
           sizes={"model_type": "spanbert", "hidden_act": "gelu_erf"}),
    Recipe("structbert", "1908.04577",
           segments=Segments(negatives="three_way", random_share=1 / 3),
           corruption=MaskTokens("structbert"),
           instances="models.structbert.instances.ReorderedInstances",
           terms=(Term("WordOrderLM"),
                  Term("SentencePrediction",
                       options={"num_labels": 3, "metrics_name": "sentence_order"})),
           defaults={"learning_rate": 1e-4},
           sizes={"model_type": "structbert", "hidden_act": "gelu_erf"}),
    Recipe("ernie", "1904.09223", segments=Segments(next_label=1),
           corruption=MaskTokens("ernie", "words", replace_from="tokens", dynamic=True),
           # The original's flags for its first release.
           defaults={"max_seq_length": 512, "learning_rate": 1e-4, "num_train_steps": 1_000_000,
                     "num_warmup_steps": 5_000, "optimizer": "ernie_adam"},
           sizes={"model_type": "ernie", "hidden_act": "relu", "layer_norm_eps": 1e-5,
                  "max_position_embeddings": 513}),
    Recipe("ernie2", "1907.12412", segments=_BLOCKS,
           corruption=MaskTokens("ernie", "words", replace_from="tokens"),
           instances="models.ernie.instances.TaskInstances",
           mixture="models.ernie.mixture.TaskMixture",
           settings=("models.ernie.settings.StageSettings",),
           tasks={"knowledge_masking": Task(_BLOCKS, masked=True),
                  "capitalization": Task(_BLOCKS, token_labels="capitalization"),
                  "token_document": Task(_BLOCKS, token_labels="token_document"),
                  "sentence_reordering": Task(Segments("sentence_reordering")),
                  "sentence_distance": Task(Segments("sentence_distance")),
                  "discourse_relation": Task(Segments("labelled_pairs")),
                  "ir_relevance": Task(Segments("labelled_pairs"),
                                       labels=("strong", "weak", "random"))},
           terms=(Term("MaskedLM", task="knowledge_masking"),
                  Term("Capitalization", task="capitalization"),
                  Term("TokenDocument", task="token_document"),
                  Term("SentenceReordering", task="sentence_reordering"),
                  Term("SentenceDistance", task="sentence_distance"),
                  *(Term(name, task=task, of_records={"num_labels": "num_labels"})
                    for name, task in (("DiscourseRelation", "discourse_relation"),
                                       ("IrRelevance", "ir_relevance")))),
           defaults={"max_seq_length": 512, "optimizer": "ernie_adam", "num_warmup_steps": 4_000},
           sizes={"model_type": "ernie", "hidden_act": "gelu_erf", "layer_norm_eps": 1e-5,
                  "type_vocab_size": 4, "use_task_id": True, "task_type_vocab_size": 16}),
    Recipe("deberta", "2006.03654", "sentencepiece", segments=Segments("runs"),
           corruption=MaskTokens("deberta", "words", dynamic=True), network="Deberta",
           terms=(Term("MaskedLM"),),
           defaults={"do_lower_case": False, "dupe_factor": 1, "max_seq_length": 512,
                     "train_batch_size": 32, "learning_rate": 1e-4, "num_train_steps": 1_000_000,
                     "num_warmup_steps": 1_000, "optimizer": "bert_adamw"},
           sizes=_DEBERTA | {"enhanced_mask_decoder": True},
           presets={"xlarge": _size(24, 1536, 24, **_CONVOLUTION),
                    "xxlarge": _size(48, 1536, 24, **_CONVOLUTION)}),
    Recipe("deberta_v3", "2111.09543", "sentencepiece", segments=Segments("runs"),
           corruption=MaskTokens("deberta", shares=(1.0, 0.0), dynamic=True), network="Deberta",
           terms=(Term("MaskedLM", network="generator"), Term("ReplacedTokenInContext", 10.0)),
           learner="models.deberta.learner.DisentangledElectra",
           settings=("models.electra.settings.GeneratorSettings",),
           # rtd.sh, of Base.
           defaults={"do_lower_case": False, "dupe_factor": 1, "max_seq_length": 512,
                     "train_batch_size": 256, "learning_rate": 1e-4,
                     "num_train_steps": 1_000_000, "num_warmup_steps": 10_000,
                     "optimizer": "bert_adamw", "generator_hidden_size": 1.0,
                     "generator_layers": 0.5},
           sizes=_DEBERTA, presets={"xsmall": _size(12, 384, 6), "small": _size(6, 768, 12)}),
    # The stage of pre-training, and the one before it.
    *(Recipe(name, "2004.02984", network="MobileBert",
             learner="models.mobilebert.learner.KnowledgeTransfer",
             settings=("models.mobilebert.settings.MobileBertSettings",),
             defaults={"train_batch_size": 2048, "learning_rate": 1.5e-3, **defaults},
             sizes={"model_type": "mobilebert", "hidden_act": "relu", "hidden_dropout_prob": 0.0,
                    "trigram_input": True, "use_bottleneck": True,
                    "key_query_shared_bottleneck": True, "num_feedforward_networks": 4,
                    "normalization_type": "no_norm", "classifier_activation": False},
             presets=_MOBILEBERT)
      for name, defaults in (
          ("mobilebert", {"num_train_steps": 500_000, "num_warmup_steps": 10_000,
                          "end_learning_rate": 1.5e-7, "optimizer": "albert_lamb"}),
          ("mobilebert_transfer", {
              "layer_wise_warmup": True, "num_train_steps": 240_000, "num_warmup_steps": 0,
              "learning_rate_schedule": "constant", "optimizer": "progressive_lamb"}))),
    # Table 5, "LTR & No NSP".
    Recipe("ltr", "1810.04805", corruption=_NEXT,
           terms=(Term("NextTokenLM", options={"metrics_name": "next_token"}),),
           sizes={"directionality": "left_to_right"}),
    # transformers examples/research_projects/distillation; the batch is 5 times 50 sequences.
    Recipe("distilbert", "1910.01108", segments=Segments("lines"),
           corruption=MaskTokens("distilbert", dynamic=True),
           learner="training.learners.distiller.Distiller",
           settings=("models.distilbert.settings.DistilBertSettings",),
           terms=(Term("MaskedLM", 2.0), Term("TokenDistillation", 5.0), Term("HiddenCosine")),
           defaults={"dupe_factor": 1, "max_seq_length": 512, "optimizer": "distilbert_adam",
                     "learning_rate": 5e-4, "learning_rate_schedule": "roberta",
                     "weight_decay": 0.0, "train_batch_size": 250, "distill_temperature": 2.0},
           sizes={"model_type": "distilbert", "type_vocab_size": 1, "hidden_act": "gelu_erf",
                  "pooler_type": "first_token_relu"},
           presets={"base": _size(6, 768, 12)}),
    # The general stage of huawei-noah/Pretrained-Language-Model TinyBERT/general_distill.py: of its
    # records one token a sequence is masked, which no loss sees.
    Recipe("tinybert", "1909.10351", learner="training.learners.distiller.Distiller",
           settings=("training.learners.teacher_settings.DistillerSettings",),
           terms=(Term("AttentionTransfer"), Term("HiddenTransfer")),
           defaults={"dupe_factor": 1, "masked_lm_prob": 1e-6, "max_predictions_per_seq": 1,
                     "optimizer": "pytorch_bert_adam", "learning_rate": 5e-5,
                     "train_batch_size": 256},
           sizes={"hidden_act": "gelu_erf"},
           presets={"4x312": {**_size(4, 312, 12), "intermediate_size": 1200},
                    "6x768": _size(6, 768, 12)}),
    # Without dual training and with it: there the teacher learns, too.
    Recipe("small_vocabulary", "1909.11687", learner="training.learners.distiller.Distiller",
           settings=("training.learners.teacher_settings.ProjectionSettings",),
           terms=(Term("MaskedLM"), Term("SentencePrediction", optional=True),
                  Term("WeightProjection")),
           presets=_SMALL),
    Recipe("dual_training", "1909.11687", learner="training.learners.dual_training.DualTraining",
           settings=("training.learners.teacher_settings.DualTrainingSettings",),
           terms=(Term("MaskedLM"), Term("SentencePrediction", optional=True),
                  Term("WeightProjection"), Term("DualMaskedLM", network="teacher")),
           presets=_SMALL),
    Recipe("universal", "1807.03819", network="UniversalTransformer",
           terms=(Term("MaskedLM"), Term("SentencePrediction"), Term("PonderTime")),
           sizes={"model_type": "universal"},
           presets=_UNIVERSAL | {
               f"adaptive_{name}": size | {"recurrence_type": "act", "act_max_steps": steps}
               for (name, size), steps in zip(_UNIVERSAL.items(), (4, 12, 12))}),
    Recipe("gpt", "Radford et al. 2018", "gpt_bpe", segments=Segments("runs", bare=True),
           corruption=_NEXT, network="GPT",
           terms=(Term("TiedLM"),),
           # The paper's: 100 epochs of BooksCorpus.
           defaults={"dupe_factor": 1, "max_seq_length": 512, "train_batch_size": 64,
                     "learning_rate": 2.5e-4, "num_warmup_steps": 2000, "optimizer": "gpt_adam",
                     "learning_rate_schedule": "cosine"},
           sizes={"model_type": "openai-gpt"}),
    Recipe("t5", "1910.10683", "sentencepiece", segments=Segments("runs", bare=True),
           corruption=MaskTokens("none"), denoising=Denoising(),
           instances="models.t5.records.TextPairs", network="T5",
           terms=(Term("SequenceLM"),),
           defaults={"dupe_factor": 1, "do_lower_case": False, "max_seq_length": 512,
                     "train_batch_size": 128, "num_train_steps": 524_288, "optimizer": "adafactor",
                     "learning_rate": 1e-2, "learning_rate_schedule": "rsqrt",
                     "num_warmup_steps": 10_000},
           sizes={"model_type": "t5"}, presets=T5_PRESETS),
    Recipe("xlnet", "1906.08237", "sentencepiece", segments=Segments("streams"),
           corruption=MaskTokens("xlnet", dynamic=True), network="XLNet",
           settings=("models.xlnet.settings.XLNetSettings",),
           terms=(Term("PermutationLM"),
                  # Table 6: "+ next-sentence pred", and "DAE + Transformer-XL", BERT's masked LM.
                  Term("SentencePrediction", by_name=True), Term("MaskedLM", by_name=True)),
           # Table 7, of the large model.
           defaults={"dupe_factor": 1, "max_seq_length": 512, "max_predictions_per_seq": 85,
                     "do_lower_case": False, "train_batch_size": 8192, "learning_rate": 4e-4,
                     "num_train_steps": 500_000, "num_warmup_steps": 40_000,
                     "optimizer": "bert_adamw", "learning_rate_schedule": "roberta"},
           sizes={"model_type": "xlnet", "mem_len": 384}),
    # kimiyoung/transformer-xl, pytorch/run_wt103_base.sh; a model of sub-words, so that its softmax
    # and its embeddings have one part.
    Recipe("transformer_xl", "1901.02860", "byte_bpe", segments=Segments("text_stream"),
           corruption=_NEXT, network="XLNet", settings=("models.xlnet.settings.MemorySettings",),
           terms=(Term("StreamLM"),),
           defaults={"do_lower_case": False, "dupe_factor": 1, "max_seq_length": 150,
                     "bsz_per_host": 60, "train_batch_size": 60, "eval_batch_size": 60,
                     "learning_rate": 2.5e-4, "num_train_steps": 200_000, "num_warmup_steps": 0,
                     "optimizer": "xlnet_adam", "learning_rate_schedule": "xlnet_cosine",
                     "weight_decay": 0.0},
           sizes={"model_type": "xlnet", "directionality": "left_to_right", "mem_len": 150,
                  "hidden_act": "relu", "untie_r": False, "use_summ_proj": False,
                  "attention_probs_dropout_prob": 0.0},
           presets={"base": {**_size(16, 410, 10, d_head=41), "intermediate_size": 2100}}),
    Recipe("elmo", "1802.05365", "elmo_words", segments=Segments("sentence_stream"),
           corruption=_NEXT, network="Elmo",
           settings=("models.recurrent.settings.SampledSettings",), terms=(Term(
               "BidirectionalLM", options={"n_negative_samples_batch": 8192}),),
           # The original's, of the released model: 10 epochs on three devices.
           defaults={"do_lower_case": False, "dupe_factor": 1, "max_seq_length": 20,
                     "bsz_per_host": 384, "train_batch_size": 384, "eval_batch_size": 384,
                     "learning_rate": 0.2, "num_warmup_steps": 0, "optimizer": "elmo_adagrad",
                     "learning_rate_schedule": "constant"},
           sizes={"model_type": "elmo"},
           presets={"small": {"dim": 1024, "projection_dim": 128, "n_highway": 1},
                    "medium": {"dim": 2048, "projection_dim": 256, "n_highway": 1},
                    "original": {}}),
    *(Recipe(name, "1511.01432", "sequence_words",
             segments=Segments("document_texts", autoencoder=name == "sa_lstm"),
             corruption=_NEXT, network="SequenceLstm",
             settings=("models.recurrent.settings.SampledSettings",),
             counts_tokens=True, terms=(Term("RecurrentLM", options={
                 "n_negative_samples_batch": 1024}),),
             # The original's code; the paper's network is larger.
             defaults={"dupe_factor": 1, "max_seq_length": 400, "bsz_per_host": 256,
                       "train_batch_size": 256, "eval_batch_size": 256, "learning_rate": 1e-3,
                       "num_warmup_steps": 0, "optimizer": "averaged_adam",
                       "learning_rate_schedule": "exponential"},
             sizes={"model_type": "sequence_lstm"},
             presets={"code": {}, "paper": {"embedding_size": 512, "hidden_size": 1024,
                                            "normalize_embeddings": False}})
      for name in ("lm_lstm", "sa_lstm")),
)}


def find(name: str) -> Recipe:
    """Returns the recipe of a name; InputError if there is none."""
    if name not in RECIPES:
        raise InputError(f"--recipe: there is no recipe {name!r}; {choose_from(name, RECIPES)}")
    return RECIPES[name]


def fill(settings: type, recipe: str, **given: Any) -> Any:
    """An instance of a dataclass of settings, such as `TrainSettings`, with a recipe's defaults;
    its field `recipe`, if it has one, is set. InputError if there is no such recipe."""
    row = find(recipe)
    existing = applicable([settings], {
        "segments": row.segments.pairing, **row.defaults, "recipe": recipe, **given})
    defaults = {name: value for name, value in {**row.defaults, "recipe": recipe}.items()
                if name in existing}
    return settings(**defaults | given)


def from_description(description: Mapping[str, Any] | None) -> Recipe:
    """The recipe that a manifest describes.

    Args:
        description: a manifest's entry "recipe" (see `Recipe.describe`); None is BERT's.

    Raises:
        InputError: it is no description of a recipe.
    """
    if description is None:
        return RECIPES["bert"]
    recipe = find(description["name"])
    try:
        check_shape(description, {
            "tokenizer": str, "tokenizer_settings": {}, "segments": Segments,
            "corruption": MaskTokens, "denoising": Denoising if recipe.denoising else type(None),
            "task": Values(", ".join(recipe.tasks), ["", *recipe.tasks].__contains__)})
    except ValueError as error:
        raise InputError("the records' manifest does not describe recipe "
                         f"{recipe.name} ({error}); make the records again.") from error
    return dataclasses.replace(
        recipe, **{name: description[name] for name in ("tokenizer", "tokenizer_settings", "task")},
        segments=Segments(**description["segments"]),
        corruption=MaskTokens.from_description(description["corruption"]),
        denoising=recipe.denoising and Denoising(**description["denoising"]))


def of_manifest(record: Mapping[str, Any] | None) -> Recipe:
    """Returns the recipe of the records that a manifest describes. Records without a manifest, and
    examples of a task, are read as BERT's."""
    return from_description(record and record.get("recipe"))

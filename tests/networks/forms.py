"""Tiny configurations of every network, without a framework."""

SIZES = {size: 2 if "layers" in size else 8 for size in (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
    "max_position_embeddings", "type_vocab_size")}
# All tensors of MobileBERT's layers are rounded.
AFFINE = {"hidden_act": "relu6", "normalization_type": "no_norm", "quantisation": {
    "scheme": "affine", "embedding_bits": 32, "position_bits": 32, "pooler_bits": 32,
    "head_bits": 32, "head_start_step": 0}}
# Of each network, the sizes and the options that decide which weights it has.
FORMS = {
    "EncoderConfig": [
        SIZES, {**SIZES, "embedding_size": 4, "use_task_id": True, "num_hidden_groups": 1},
        {**SIZES, "model_type": "distilbert", "pooler_type": "first_token_relu"},
        {**SIZES, "num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2,
         "shared_parts": "attention", "pooler_type": "first_token"},
        {**SIZES, "pruned_heads": {0: [0, 3], 1: range(8)}, "intermediate_sizes": [8, 5]},
        {**SIZES, "quantisation": {"weight_bits": 4}}],
    "FixedPatternConfig": [
        {**SIZES, "fixed_heads": ["current"]}, {**SIZES, "fixed_heads": ["current"] * 8}],
    "UniversalConfig": [SIZES, {**SIZES, "recurrence_type": "act"},
                        {**SIZES, "step_timing_signal_type": "sinusoid"}],
    "GPTConfig": [{size: value for size, value in SIZES.items() if size != "type_vocab_size"}],
    "T5Config": [{"vocab_size": 8, "d_model": 8, "d_kv": 4, "d_ff": 6, "num_layers": 2,
                  "num_heads": 3, **form} for form in (
        {}, {"num_decoder_layers": 1}, {"architecture": "language_model"},
        {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False})],
    "XLNetConfig": [{"vocab_size": 8, "d_model": 8, "d_head": 4, "d_inner": 6, "n_layer": 2,
                     "n_head": 3, **form} for form in (
        {}, {"untie_r": False, "summary_type": "attn"}, {"use_summ_proj": False})],
    "MobileBertConfig": [{**SIZES, "intra_bottleneck_size": 8, **form} for form in (
        {}, {"intra_bottleneck_size": 16, "use_bottleneck_attention": True},
        {"trigram_input": False, "classifier_activation": True, "num_feedforward_networks": 2},
        {"key_query_shared_bottleneck": False, "num_feedforward_networks": 1},
        {"use_bottleneck": False}, AFFINE)],
    "ModernBertConfig": [{**{size: 8 for size in SIZES if size != "type_vocab_size"},
                          "num_attention_heads": 2, "num_hidden_layers": 4, **form} for form in (
        {"local_attention": 2, "hidden_dropout_prob": 0.1},
        {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True},
        {"layer_types": ["full_attention"] * 4})],
    "DebertaConfig": [{**SIZES, "max_relative_positions": 8, **form} for form in (
        {}, {"type_vocab_size": 0, "position_biased_input": False, "position_buckets": 4},
        {"share_att_key": True, "norm_rel_ebd": "layer_norm", "conv_kernel_size": 3},
        {"pos_att_type": ["c2p"]}, {"relative_attention": False},
        {"position_biased_input": False, "enhanced_mask_decoder": True})],
    **{name: [{**{size: 8 for size in SIZES if size != "type_vocab_size"}, "num_attention_heads": 4,
               **form} for form in forms] for name, forms in (
        ("EuroBertConfig", ({"num_hidden_layers": 2, "num_key_value_heads": 2,
                             "attention_probs_dropout_prob": 0.1},
                            {"attention_bias": True, "mlp_bias": True})),
        ("NeoBertConfig", ({"num_hidden_layers": 2},)),
        ("NomicBertConfig", ({"hidden_dropout_prob": 0.1, "rotary_scaling_factor": 2.0,
                              "max_trained_positions": 5},)))},
    "MPNetConfig": [SIZES, {**SIZES, "relative_attention_num_buckets": 40}],
    "ElmoConfig": [{"vocab_size": 8, "projection_dim": 4, "dim": 6, "char_embedding_dim": 3,
                    **form} for form in (
        {"filters": [[1, 2], [2, 3]]}, {"filters": [[1, 4]], "n_highway": 0, "dim": 4},
        {"filters": []})],
    "SequenceLstmConfig": [{"vocab_size": 8, "embedding_size": 4, "hidden_size": 6,
                            "num_hidden_layers": 2, "normalize_embeddings": form}
                           for form in (True, False)],
    "BiLstmConfig": [{"vocab_size": 8, "embedding_size": 4, "lstm_size": 3, "hidden_size": 6,
                      "pairs": form} for form in (False, True)],
}

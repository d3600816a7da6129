"""The published sizes of BERT and its relatives, to the last weight."""

import math

import pytest

from bert_tf import networks
from bert_tf.checkpoints import names
from bert_tf.config import PRESETS, EncoderConfig, published
from bert_tf.config.sizes import letters, numbers
from bert_tf.errors import InputError
from bert_tf.models.electra.learner import generator_config
from bert_tf.models.electra.settings import GeneratorSettings
from bert_tf.recipes import RECIPES

VOCABULARIES = {"bert": 30_522, "albert": 30_000, "electra": 30_522, "roberta": 50_265,
                "universal": 30_522, "t5": 32_100, "mobilebert": 30_522,
                "distilbert": 30_522, "tinybert": 30_522, "modernbert": 50_368}
# Encoders without heads. BERT: arXiv:1810.04805 and 1908.08962, base and large the published 110M
# and 340M. ALBERT: arXiv:1909.11942, table 1, 12M, 18M, 60M, 235M. ELECTRA's have no pooler.
# RoBERTa: those of its transformers class, 124,645,632 and 355,359,744, less two positions.
PUBLISHED = {
    "bert": {"tiny": 4_385_920, "mini": 11_170_560, "small": 28_763_648, "medium": 41_373_184,
             "base": 109_482_240, "large": 335_141_888},
    "albert": {name + version: count for version in ("", "_v2") for name, count in {
        "base": 11_683_584, "large": 17_683_968, "xlarge": 58_724_864,
        "xxlarge": 222_595_584}.items()},
    "electra": {"small": 13_483_008, "base": 108_891_648, "large": 334_092_288},
    "roberta": {"base": 124_644_096, "large": 355_357_696},
    # transformers' masked LMs, 149,655,232 and 395,881,664, without the decoder's bias.
    "modernbert": {name + length: count for length in ("", "_8192") for name, count in {
        "base": 149_604_864, "large": 395_831_296}.items()},
    # As transformers counts the released ones.
    "t5": {"small": 60_506_624, "base": 222_903_552, "large": 737_668_096, "3b": 2_851_598_336,
           "11b": 11_307_321_344, "small_v1_1": 76_961_152, "base_v1_1": 247_577_856,
           "large_v1_1": 783_150_080, "xl_v1_1": 2_849_757_184, "xxl_v1_1": 11_135_332_352},
    # The first is that of the released checkpoint. arXiv:2004.02984 has 25.3M, 15.1M and 293M.
    "mobilebert": {"mobilebert": 24_581_888, "mobilebert_plain": 24_581_888,
                   "mobilebert_tiny": 15_485_696, "ib_bert": 294_467_840},
    # transformers' DistilBertForSequenceClassification without its classifier; 66M in the paper.
    "distilbert": {"base": 66_953_472},
    # arXiv:1909.10351 has 14.5M and 67.0M.
    "tinybert": {"4x312": 14_350_248, "6x768": 66_955_008},
    # tensor2tensor's sizes with BERT's vocabulary, segments and pooler; counted by hand.
    "universal": {"tiny": 4_122_624, "small": 19_045_376, "base": 44_906_496,
                  "adaptive_tiny": 4_122_241, "adaptive_small": 19_048_961,
                  "adaptive_base": 44_913_665},
}
# arXiv:1909.11942, table 4: by embedding width and by what is shared. The paper rounds.
SHARED = {768: {"all": 31_114_752, "attention": 83_078_400, "feed_forward": 57_117_696,
                None: 109_081_344},
          128: {"all": 11_683_584, "attention": 63_647_232, "feed_forward": 37_686_528,
                None: 89_650_176}}
# ELECTRA's generators beside the shared embeddings, by size and width; the released small one has
# the full width.
GENERATORS = {("small", 0.25): 608_064, ("small", 1.0): 9_510_144, ("base", 0.33333): 9_673_984,
              ("large", 0.25): 19_216_640}


def count(config, parts=(*names.NETWORK, "pooler")):
    """The number of weights of an encoder, by the table of their names and shapes."""
    sizes = letters(config)
    return sum(math.prod(sizes[letter] for letter in shape) * len(numbers(config, name))
               for name, shape in names.shapes(config).items() if names.head(name) in parts)


def config_of(recipe, size, **overrides):
    recipe = RECIPES[recipe]
    return published(size, recipe.sizes, recipe.presets, **overrides)


@pytest.mark.parametrize("recipe, size", [
    (recipe, size) for recipe, sizes in PUBLISHED.items() if recipe in RECIPES for size in sizes])
def test_published_sizes(recipe, size):
    config = config_of(recipe, size, vocab_size=VOCABULARIES[recipe])
    assert count(config) == PUBLISHED[recipe][size]
    assert config.num_weights == count(config)


@pytest.mark.parametrize("width, parts", [(width, parts) for width in SHARED
                                          for parts in SHARED[width]])
def test_what_layers_share(width, parts):
    sharing = {"shared_parts": parts} if parts else {"num_hidden_groups": None}
    config = config_of("albert", "base", vocab_size=30_000, embedding_size=width, **sharing)
    assert count(config) == SHARED[width][parts]


@pytest.mark.parametrize("size, width", GENERATORS)
def test_generators_of_electra(size, width):
    generator = generator_config(config_of("electra", size),
                                 GeneratorSettings(generator_hidden_size=width))
    assert count(generator, ("embeddings_project", "encoder")) == GENERATORS[size, width]


# ELMo's and DeBERTa's numbers are published in millions (test_elmo.py), Transformer-XL's with words
# and an adaptive softmax, those of 2015 and of small vocabularies not at all.
UNCOUNTED = ("elmo", "deberta", "deberta_v3", "lm_lstm", "sa_lstm", "small_vocabulary",
             "dual_training", "transformer_xl")


def test_no_size_is_missing_from_the_table():
    assert set(PUBLISHED["bert"]) == set(PRESETS)
    for recipe in RECIPES.values():
        if recipe.name not in UNCOUNTED:
            published = PUBLISHED.get(recipe.name.removesuffix("_transfer"), ())
            assert set(recipe.presets) <= set(published)


def test_a_size_may_be_any_of_bert_with_the_values_of_the_recipe():
    tiny = config_of("albert", "tiny", vocab_size=100)
    assert (tiny.model_type, tiny.num_hidden_groups, tiny.depth) == ("albert", 1, 2)
    assert tiny.hidden_dropout_prob == 0.1
    assert config_of("albert", "base_v2").hidden_dropout_prob == 0


def test_groups_are_those_of_a_division_in_floating_point():
    """22 layers in 22 groups use one group twice and never another; most sizes are even."""
    def groups(layers, count):
        return [attention for attention, _ in EncoderConfig(
            10, num_hidden_layers=layers, num_hidden_groups=count).layer_weights]

    assert groups(12, 4) == [layer * 4 // 12 for layer in range(12)]
    found = groups(22, 22)
    assert found != list(range(22)) and found == [int(i / 22 * 22) for i in range(22)]
    config = EncoderConfig(10, num_hidden_layers=22, num_hidden_groups=22)
    held = numbers(config, "encoder/layer_{i}/output/dense/bias")
    assert config.shares_layers and len(held) == len(set(found)) == 21


@pytest.mark.parametrize("recipe", ["bert", "t5", "xlnet", "mobilebert", "gpt"])
def test_a_network_that_does_not_fit_into_the_memory_is_refused(recipe, monkeypatch):
    config = config_of(recipe, "base")
    monkeypatch.setattr(networks, "machine_memory", lambda: 4 * config.num_weights - 1)
    with pytest.raises(InputError, match=f"{config.num_weights:,} weights takes .* of memory"):
        networks.build(config)


def test_what_takes_long_is_announced(capsys, monkeypatch):
    monkeypatch.setattr(networks, "network_of", lambda config: lambda config: None)
    networks.build(EncoderConfig(9, 4, 101, 1, 4, max_position_embeddings=4))
    assert "building a network of 101 layers" in capsys.readouterr().out

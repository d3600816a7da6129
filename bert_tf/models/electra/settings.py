"""Settings of ELECTRA's pre-training, under the names of google-research/electra."""

import dataclasses

from bert_tf.flags import check, only, option

_with_generator = only("uniform_generator", False)
_of_its_own = only("untied_generator", True)
_of_electra = only("electra_objective", True)
DISCRIMINATORS = ("replaced_token", "replaced_token_written", "replace_mlm", "all_tokens_mlm")


@dataclasses.dataclass(frozen=True)
class GeneratorSettings:
    """ELECTRA's generator, and how the network learns from it."""

    generator_hidden_size: float = _of_its_own(
        0.25, "Width of the generator as a share of the model's; 1/4 to 1/2 work best.", above=0)
    generator_layers: float = _of_its_own(
        1.0, "Layers of the generator as a share of the model's.", above=0)
    untied_generator_embeddings: bool = _of_its_own(
        False, "The generator has separate embeddings, as wide as its layers.", rare=True)
    untied_generator: bool = _with_generator(
        True, "The generator is a separate network; if false, it is the model itself.", rare=True)
    uniform_generator: bool = _of_electra(
        False, "There is no generator: all tokens are drawn with the same probability.", rare=True)
    electra_objective: bool = option(
        True, "Learn which tokens were replaced; if false, the model learns masked tokens alone.",
        rare=True)
    disallow_correct: bool = _of_electra(False, "The original token is never drawn.", rare=True)
    temperature: float = _with_generator(
        1.0, "Temperature of the draws from the generator.", above=0, rare=True)
    gen_weight: float | None = option(
        None, "Weight of the generator's loss; default: 1.", least=0)
    disc_weight: float | None = _of_electra(
        None, "Weight of the model's loss; default: the recipe's, 50 of electra, or 1 if "
        "--discriminator predicts tokens.", least=0)
    discriminator: str = _of_electra(
        "replaced_token", "What the model learns. replaced_token: whether each token was "
        "replaced. replaced_token_written: the same, at the generator's positions alone (ELECTRA "
        "15%). replace_mlm: the original tokens at those positions. all_tokens_mlm: the original "
        "tokens at all positions.", choices=DISCRIMINATORS)

    __post_init__ = check

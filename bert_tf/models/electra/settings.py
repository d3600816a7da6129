"""Settings of pre-training that only some recipes or runs have."""

import dataclasses

from bert_tf.flags import check, only, option

_with_generator = only("uniform_generator", False)
_of_its_own = only("untied_generator", True)
_of_electra = only("electra_objective", True)
DISCRIMINATORS = ("replaced_token", "replaced_token_written", "replace_mlm", "all_tokens_mlm")
NEW_LAYERS = ("copied", "identity", "random")

@dataclasses.dataclass(frozen=True)
class GeneratorSettings:
    """ELECTRA's generator, and how the network learns from it."""

    generator_hidden_size: float = _of_its_own(
        0.25, "Width of the generator as a share of the model's; 1/4 to 1/2 work best.", above=0,
        below=float("inf"))
    generator_layers: float = _of_its_own(
        1.0, "Layers of the generator as a share of the model's.", above=0, below=float("inf"))
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
        1.0, "Temperature of the draws from the generator.", above=0, below=float("inf"), rare=True)
    gen_weight: float | None = option(None, "Weight of the generator's loss; default: 1.")
    disc_weight: float | None = _of_electra(
        None, "Weight of the model's loss; default: 50, or 1 if --discriminator predicts tokens.")
    discriminator: str = _of_electra(
        "replaced_token", "What the model learns. replaced_token: whether each token was "
        "replaced. replaced_token_written: the same, at the generator's positions alone (ELECTRA "
        "15%). replace_mlm: the original tokens at those positions. all_tokens_mlm: the original "
        "tokens at all positions.", choices=DISCRIMINATORS)

    __post_init__ = check


_of_stages = only("stack_layers")


@dataclasses.dataclass(frozen=True)
class StackingSettings:
    """Progressive stacking: a shallow network is trained first, then a deeper one made of it."""

    stack_layers: list[str] = option(
        [], "Number of layers in each stage, such as 3,6,12. Each number must be a multiple of the "
        "number before it, and the last must equal the configuration's. Default: all layers from "
        "the start.", items=int, least=1, rare=True)
    stack_steps: list[str] = _of_stages(
        [], "Steps of each stage but the last. The last stage ends when all stages together have "
        "--num_train_steps.", items=int, least=1)
    stack_learning_rates: list[str] = _of_stages(
        [], "Learning rate at the start of each stage, after its warm-up, and at the end of the "
        "last stage. In each stage the rate goes from its own value to the next. Default: "
        "--learning_rate for all stages, --end_learning_rate at the end.", items=float, least=0,
        below=float("inf"))
    stack_warmup_steps: list[str] = _of_stages(
        [], "Warm-up steps of each stage. Default: --num_warmup_steps in each.", items=int, least=0)
    stack_new_layers: str = _of_stages(
        "copied", "Initial weights of the layers that are added above the L trained ones. copied: "
        "layer i has the weights of layer i mod L. identity: weights with which the new layers "
        "change nothing at first. random: the usual random weights.", choices=NEW_LAYERS)
    stack_optimizer: str = _of_stages(
        "reset", "State of the optimizer in a new stage. reset: its moments begin at 0. copied: "
        "they are copied with the layers. Its step count begins at 0 in both cases.",
        choices=("reset", "copied"))

    __post_init__ = check

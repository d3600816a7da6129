"""The heads of all objectives, one row each; every other list of heads is derived from this one. A
head is an objective with weights of its own, whose names begin with the head's name."""

import dataclasses
import functools
import typing


def dense(name: str, inputs: str, outputs: str) -> dict[str, str]:
    """The weights of a dense layer and their shapes, in the letters of `checkpoints.names`."""
    return {f"{name}/kernel": inputs + outputs, f"{name}/bias": outputs}


def norm(name: str, width: str) -> dict[str, str]:
    """The weights of a layer normalisation and their shapes."""
    return {f"{name}/gamma": width, f"{name}/beta": width}


class Choice(typing.NamedTuple):
    """A head of texts as `bert-finetune --head` offers it.

    Attributes:
        name, help: the flag's value; the head in words, with its defaults.
        flags: the flags of the head, and the arguments of its objective that they give.
        compares: whether the objective is built with `pairs`: whether each text is a pair.
        freezes: whether the head reads features, for which the encoder stays as it is.
    """

    name: str
    help: str
    flags: dict[str, str] = {}
    compares: bool = False
    freezes: bool = False


@dataclasses.dataclass(frozen=True)
class Head:
    """A head.

    Attributes:
        name, objective: the default name of the objective; its class, a public name of `bert_tf`.
        module: the module of that class: a file of `bert_tf/objectives/`, BERT's or a relative's.
        shapes: the weights by their names below the head's, with their shapes in the letters of
            `checkpoints.names`.
        task: whether the head is trained for a task; other heads are trained in pre-training.
        inputs: the axes of the features that it is trained on: B batch, S sequence, C choices.
        rebuildable: whether the weights alone show how the head was built.
        huggingface, problem_type: the end of the name of its model in transformers, after
            "BertFor", or ""; its `problem_type`, where one such class serves several heads.
        choice: how a user chooses it; None if the task decides.
    """

    name: str
    objective: str
    module: str
    shapes: dict[str, str] = dataclasses.field(default_factory=lambda: dense("dense", "H", "C"))
    optional: tuple[str, ...] = ()
    task: bool = True
    exportable: bool = True
    inputs: str = "BS"
    rebuildable: bool = True
    huggingface: str = "SequenceClassification"
    problem_type: str = ""
    choice: Choice | None = None

    @property
    def is_classifier(self) -> bool:
        """Whether Google's and Hugging Face's files give its weights a name that several heads
        share, so that a file alone doesn't show which head it holds."""
        return self.huggingface in ("SequenceClassification", "TokenClassification",
                                    "MultipleChoice")

    @property
    def is_pooled(self) -> bool:
        """Returns whether it reads one vector of the whole sequence."""
        return self.huggingface in ("SequenceClassification", "MultipleChoice",
                                    "NextSentencePrediction")

    @property
    def reads_windows(self) -> bool:
        """Returns whether it gives one answer per text, so that windows' answers can be joined."""
        return self.task and self.name not in _BY_POSITION and (
            self.is_labelled or "C" in self.inputs)

    @property
    def is_labelled(self) -> bool:
        """Returns whether the objective is built with `num_labels`, the size of its last bias."""
        return self.shapes.get("dense/bias") == "C"


MAX_LSTMS = 4       # of FeatureTagging
_BY_POSITION = ("tagging", "feature_tagging", "span_comparison")    # they answer about tokens


def _lstms(name, count):
    return {f"{name}/lstm_{i}/{way}_lstm/lstm_cell/{weight}": shape
            for i in range(count) for way in ("forward", "backward")
            for weight, shape in (("kernel", "FG"), ("recurrent_kernel", "UG"), ("bias", "G"))}


_LSTMS = _lstms("features", MAX_LSTMS)
_COMPARE = {name.replace("compare/lstm_0", "compare_lstm"): shape
            for name, shape in _lstms("compare", 1).items()}
# Of a head on top of an LSTM, whose dense layer has the LSTM's width in place of H.
BILSTM = _lstms("bilstm", 1)


def _task(name, objective, module, outputs="C", **options):
    """The row of a head that is one dense layer, with or without an LSTM below it."""
    return Head(name, objective, module, {**dense("dense", "H", outputs), **BILSTM},
                tuple(BILSTM), **options)


# The row of a head of pre-training that is not a model of Hugging Face.
_pretrained = functools.partial(Head, task=False, exportable=False, huggingface="")
_UNTIED = ("output_weights", "extra/output_weights")
_MASKED_LM = {**dense("transform/dense", "H", "X"), **norm("transform/LayerNorm", "X"),
              "output_bias": "V", "output_weights": "VX", "extra/output_weights": "VY"}
HEADS = {head.name: head for head in (
    # The output matrix is the embedding table, with further columns in MobileBERT, unless the
    # objective has its own matrix.
    Head("masked_lm", "MaskedLM", "bert.objective", _MASKED_LM, _UNTIED, task=False,
         huggingface="MaskedLM"),
    Head("next_sentence", "SentencePrediction", "bert.objective",
         task=False, exportable=False, huggingface="NextSentencePrediction"),
    _pretrained("span_boundary", "SpanBoundary", "models.spanbert.objective", {
        "position_embeddings": "RW", **dense("dense_0", "B", "H"), **norm("LayerNorm_0", "H"),
        **dense("dense_1", "H", "E"), **norm("LayerNorm_1", "E"), "output_bias": "V"}),
    _pretrained("replaced_token", "ReplacedToken", "models.electra.objective",
                {**dense("dense", "H", "H"), **dense("dense_1", "H", "1")}),
    _pretrained("replaced_token_in_context", "ReplacedTokenInContext", "models.deberta.objective",
                {**norm("LayerNorm", "H"), **dense("dense", "H", "H"),
                 **dense("dense_1", "H", "1")}),
    _pretrained("all_tokens_lm", "AllTokensLM", "models.electra.objective", {
        **dense("transform/dense", "H", "E"), **norm("transform/LayerNorm", "E"),
        "output_bias": "V", **dense("copy/dense", "H", "1")}),
    _pretrained("ponder_time", "PonderTime", "models.universal.objective", {}),    # has no weights
    *(_pretrained(name, objective, "models.ernie.objective")
      for name, objective in (("capitalization", "Capitalization"),
                              ("token_document", "TokenDocument"),
                              ("sentence_reordering", "SentenceReordering"),
                              ("sentence_distance", "SentenceDistance"),
                              ("discourse_relation", "DiscourseRelation"),
                              ("ir_relevance", "IrRelevance"))),
    # These have no weights of their own.
    _pretrained("tied_lm", "TiedLM", "models.gpt.objective", {}),
    _pretrained("sequence_lm", "SequenceLM", "models.t5.objective", {}),
    # Its matrix is the embedding table.
    _pretrained("permutation_lm", "PermutationLM", "models.xlnet.objective", {"output_bias": "V"}),
    # The language models of recurrent networks; W is the width of their input.
    *(_pretrained(name, objective, "models.recurrent.objective",
                  {"output_weights": "VW", "output_bias": "V"})
      for name, objective in (("bidirectional_lm", "BidirectionalLM"),
                              ("recurrent_lm", "RecurrentLM"))),
    _task("classification", "Classification", "classification",
          problem_type="single_label_classification",
          choice=Choice("linear", "one layer on the pooled output (default).")),
    # With two labels it has one output.
    Head("step_classification", "StepClassification", "models.recurrent.objective",
         {**dense("hidden", "H", "Q"), **dense("dense", "Q", "C")},
         tuple(dense("hidden", "H", "Q")), rebuildable=False, huggingface="",
         choice=Choice(
             "step", "a hidden layer of 30 units on the output at the last token "
             "(arXiv:1511.01432; the default of its LSTM).",
             {"head_size": "hidden_size", "label_gain": "label_gain"})),
    # G is three times H; the answers are found in several turns, which have the same weights.
    Head("stochastic_answer", "StochasticAnswer", "models.mtdnn.objective",
         {**dense("query", "H", "1"), **dense("attention", "H", "H"), "gru/kernel": "HG",
          "gru/recurrent_kernel": "HG", "gru/bias": "2G", **dense("dense", "F", "C")},
         rebuildable=False, huggingface=""),
    Head("attentive_classification", "AttentiveClassification", "attentive_classification",
         {**dense("hidden", "F", "Q"), **dense("dense", "Q", "C"), **_LSTMS, **_COMPARE,
          "features/layer_weights": "K", "features/scale": ""},
         (*(name for name in _LSTMS if "/lstm_0/" not in name), *_COMPARE,
          "features/layer_weights", "features/scale"),
         exportable=False, rebuildable=False, huggingface="",
         choice=Choice(
             "attentive", "2 LSTMs of 1500 units each way, with attention between the two texts, "
             "and a hidden layer of 512 units. They read features from the model's frozen layers "
             "(arXiv:1804.07461).",
             {"head_size": "hidden_size", "feature_layers": "layers", "lstm_size": "lstm_size",
              "lstm_layers": "lstm_layers"}, compares=True, freezes=True)),
    _task("multi_label", "MultiLabel", "classification", problem_type="multi_label_classification"),
    _task("regression", "Regression", "classification", problem_type="regression"),
    _task("tagging", "Tagging", "tagging", huggingface="TokenClassification"),
    # Has at least one LSTM, and weights of layers only if it adds layers up.
    Head("feature_tagging", "FeatureTagging", "tagging",
         {**dense("dense", "F", "C"), **_LSTMS,
          "features/layer_weights": "K", "features/scale": ""},
         (*(name for name in _LSTMS if "/lstm_0/" not in name),
          "features/layer_weights", "features/scale"),
         exportable=False, rebuildable=False, huggingface=""),
    # Begins as the masked language model of pre-training, and has its name.
    Head("candidate_lm", "CandidateLM", "candidate_lm", _MASKED_LM, _UNTIED, exportable=False,
         rebuildable=False, huggingface=""),
    # Reads the vectors of two parts of a text, with or without the pooled output.
    Head("span_comparison", "SpanComparison", "span_comparison",
         {**dense("attention", "H", "1"), **dense("dense", "F", "C")}, exportable=False,
         rebuildable=False, huggingface=""),
    _task("answer_span", "AnswerSpan", "answer_span", "2", huggingface="QuestionAnswering"),
    # Without the hidden layers, each decision is a dense layer on one vector.
    Head("conditional_span", "ConditionalSpan", "conditional_span",
         {**dense("start", "H", "1"), **dense("end/hidden", "J", "Q"),
          **norm("end/LayerNorm", "Q"), **dense("end/dense", "Q", "1"),
          **dense("answerable/hidden", "J", "Q"), **dense("answerable/dense", "Q", "1")},
         (*dense("end/hidden", "J", "Q"), *norm("end/LayerNorm", "Q"),
          *dense("answerable/hidden", "J", "Q"), "answerable/dense/bias"),
         rebuildable=False, huggingface=""),
    _task("multiple_choice", "MultipleChoice", "classification", "1", inputs="BCS",
          huggingface="MultipleChoice"),
)}
# The heads that `--head` may name, by its values.
CHOICES = {head.choice.name: head for head in HEADS.values() if head.choice}
# Objectives whose heads have the weights of another's: class -> name of that head, module.
FURTHER = {"WordOrderLM": ("masked_lm", "models.structbert.objective")}
# Objectives of left-to-right networks, whose heads have the weights of another's: class -> name of
# that head, module.
CAUSAL = {"NextTokenLM": ("masked_lm", "models.gpt.objective"),
          "StreamLM": ("permutation_lm", "models.xlnet.objective")}
# Objectives that a learner adds, which are not saved: class -> name, module.
OF_LEARNERS = {"HeadGates": ("head_gates", "head_gates")}
# Objectives that compare a network with a teacher, which are not saved: class -> name, module.
TAUGHT = {
    "AttentionMapTransfer": ("attention_map_transfer", "models.mobilebert.objective"),
    "AttentionTransfer": ("attention_transfer", "models.tinybert.objective"),
    "DualMaskedLM": ("dual_masked_lm", "small_vocabulary"),
    "FeatureMapTransfer": ("feature_map_transfer", "models.mobilebert.objective"),
    "HiddenCosine": ("hidden_cosine", "models.distilbert.objective"),
    "HiddenTransfer": ("hidden_transfer", "models.tinybert.objective"),
    "InternalAttention": ("internal_attention", "internal_transfer"),
    "InternalCosine": ("internal_cosine", "internal_transfer"),
    "MeanTransfer": ("mean_transfer", "models.mobilebert.objective"),
    "PredictionTransfer": ("prediction_transfer", "models.mobilebert.objective"),
    "TokenDistillation": ("token_distillation", "models.distilbert.objective"),
    "TokenSquaredError": ("token_squared_error", "models.distilbert.objective"),
    "VarianceTransfer": ("variance_transfer", "models.mobilebert.objective"),
    "WeightProjection": ("weight_projection", "small_vocabulary")}
# The heads by the classes of all objectives.
OBJECTIVES = {**{head.objective: head for head in HEADS.values()},
              **{objective: HEADS[name] for objective, (name, _) in (CAUSAL | FURTHER).items()}}


def objective_of(head: Head, is_causal: bool) -> str:
    """The class of a head's objective in a network, which may be one from left to right."""
    return next((objective for objective, (name, _) in CAUSAL.items()
                 if is_causal and name == head.name), head.objective)

"""Networks: from ids to named tensors."""

import sys
from typing import Any

import lazy_loader

# The network of each class of `bert_tf.config`, by name.
NETWORKS = {"BertConfig": "Bert", "EncoderConfig": "BertEncoder",
            "FixedPatternConfig": "FixedPatternEncoder",
            "UniversalConfig": "UniversalTransformer", "GPTConfig": "GPT",
            "ElmoConfig": "Elmo", "SequenceLstmConfig": "SequenceLstm", "T5Config": "T5",
            "BiLstmConfig": "BiLstm", "XLNetConfig": "XLNet", "MobileBertConfig": "MobileBert",
            "ModernBertConfig": "ModernBert", "MPNetConfig": "MPNet",
            "DebertaConfig": "Deberta"}

_from_files, __dir__, __all__ = lazy_loader.attach("bert_tf", submod_attrs={
    "bert.network": ["Bert"],
    "networks.building": ["attentions", "build", "check_memory", "first_state", "network_of"],
    "networks.encoder": ["BertEncoder"],
    "layers.masks": ["pool"],
    "models.deberta.network": ["Deberta"],
    "models.fixed_patterns.network": ["FixedPatternEncoder"],
    "models.gpt.network": ["GPT"],
    "models.mobilebert.network": ["MobileBert"],
    "models.modernbert.network": ["ModernBert"],
    "models.mpnet.network": ["MPNet"],
    "models.recurrent.network": ["BiLstm", "Elmo", "SequenceLstm"],
    "models.t5.network": ["T5"],
    "models.universal.network": ["UniversalTransformer"],
    "models.xlnet.network": ["XLNet"]})
__all__ += ["NETWORKS"]


def __getattr__(name: str) -> Any:
    value = globals()[name] = _from_files(name)
    # lazy_loader puts it into bert_tf too, whose own classes have `from_pretrained`.
    vars(sys.modules["bert_tf"]).pop(name, None)
    return value

"""ELMo's weights in the hdf5 files of allenai/bilm-tf, with their options.json.

The authors' files of ELMo hold the network; files written here also hold the softmax, if there is
one, under the names of bilm-tf's `dump_weights`.
"""

import json
import os

from bert_tf.checkpoints import hdf5, rules
from bert_tf.checkpoints.rules import SELF, Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, as_float32, check_heads
from bert_tf.config import ElmoConfig
from bert_tf.errors import InputError, naming
from bert_tf.files import is_file, is_folder, match_names, open_file, read_json, write_json
from bert_tf.tokenization import open_tokenizer

_WAYS = ("forward", "backward")
_MOST = 64          # convolutions, highway layers, LSTMs each way
_ENDING, _OPTIONS = "weights.hdf5", "options.json"
# Keys of options.json, by our names.
_THEIRS = {"vocab_size": "n_tokens_vocab", "hidden_dropout_prob": "dropout",
           "char_embedding_dim": "embedding.dim"}
_VOCABULARY = 793_471       # of the released models, where nothing says otherwise


def _rows():
    rows = [("embeddings/char_embeddings", "char_embed", SELF),
            ("embeddings/word_embeddings", "embedding", SELF),
            ("embeddings/projection", "CNN_proj", (("/kernel", "/W_proj"), ("/bias", "/b_proj"))),
            ("bidirectional_lm", "softmax", (("/output_weights", "/W"), ("/output_bias", "/b")))]
    for i in range(_MOST):
        rows.append((f"embeddings/convolution_{i}", "CNN", (
            ("/kernel", f"/W_cnn_{i}", "1RBW"), ("/bias", f"/b_cnn_{i}"))))
        rows += [(f"embeddings/highway_{i}_{gate}", f"CNN_high_{i}", (
            ("/kernel", f"/W_{gate}"), ("/bias", f"/b_{gate}"))) for gate in ("carry", "transform")]
        rows += [(f"encoder/{way}_{i}", f"RNN_{number}/RNN/MultiRNNCell/Cell{i}/LSTMCell", (
            ("/kernel", "/W_0"), ("/bias", "/B"), ("/projection_kernel", "/W_P_0")))
            for number, way in enumerate(_WAYS)]
    return tuple(rows)


FORMAT = Format(_rows())


def find(path: str) -> str | None:
    if not is_folder(path):
        return path if path.endswith(_ENDING) and is_file(path) else None
    files = match_names(path, f"*{_ENDING}")
    return files[0] if len(files) == 1 else None


def _config(file, tensors):
    path = file.removesuffix(_ENDING) + _OPTIONS
    if not is_file(path):
        raise InputError(f"{file}: there is no {os.path.basename(path)} in the same folder; put it "
                         "there.")
    options = read_json(path)
    try:
        lstm, cnn = options["lstm"], options.get("char_cnn")
        softmax = tensors.get("softmax/W") or tensors.get("embedding")
        vocabulary = rules.vocabulary_beside(file)
        sizes = {name: lstm[name] for name in ("projection_dim", "dim", "n_layers")}
        sizes |= {"use_skip_connections": bool(lstm.get("use_skip_connections")),
                  "cell_clip": lstm.get("cell_clip") or 0, "proj_clip": lstm.get("proj_clip") or 0,
                  "hidden_dropout_prob": options.get("dropout", 0.1), "filters": ()}
        if softmax:
            sizes["vocab_size"] = softmax.shape[0]
        elif vocabulary:
            sizes["vocab_size"] = open_tokenizer(vocabulary).vocabulary.size
        else:
            sizes["vocab_size"] = options.get("n_tokens_vocab", _VOCABULARY)
        if cnn:
            sizes |= {"filters": cnn["filters"], "char_embedding_dim": cnn["embedding"]["dim"],
                      "n_highway": cnn.get("n_highway") or 0, "activation": cnn["activation"],
                      "max_characters_per_token": cnn["max_characters_per_token"]}
        with naming(path, _THEIRS):
            return ElmoConfig(**sizes)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} does not describe a bilm-tf model ({error!r}); put the file of "
                         "the model there.") from error


def read(file: str) -> Source:
    with open_file(file, "rb") as content:
        tensors = hdf5.tensors(content.read(), file)
    return Source(file, _config(file, tensors), tensors, FORMAT, rules.vocabulary_beside(file))


def table_for(weights: Weights) -> Format:
    if not isinstance(weights.config, ElmoConfig):
        raise InputError(f"{weights.source}: the format elmo holds only language models of ELMo, "
                         f"but the model_type is {weights.config.model_type}; choose another "
                         "format.")
    check_heads(weights, "elmo", {"bidirectional_lm"})
    return FORMAT


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    config = weights.config
    hdf5.write(os.path.join(folder, f"elmo_{_ENDING}"), (
        (name, as_float32(tensor, weights.source)) for name, tensor in tensors.items()))
    lstm = {name: getattr(config, name) for name in (
        "use_skip_connections", "projection_dim", "cell_clip", "proj_clip", "dim", "n_layers")}
    options = {"bidirectional": True, "dropout": config.hidden_dropout_prob, "lstm": lstm,
               "n_tokens_vocab": config.vocab_size}
    if config.filters:
        options["char_cnn"] = {
            "activation": config.activation, "embedding": {"dim": config.char_embedding_dim},
            "filters": json.loads(json.dumps(config.filters)), "n_highway": config.n_highway,
            "max_characters_per_token": config.max_characters_per_token, "n_characters": 262}
    write_json(os.path.join(folder, f"elmo_{_OPTIONS}"), options)
    if weights.tokenizer:
        weights.tokenizer.save(folder)

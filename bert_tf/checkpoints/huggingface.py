"""Hugging Face's checkpoints: `model.safetensors` with a `config.json`."""

import dataclasses
import functools
import os
import re

import numpy as np

from bert_tf.checkpoints import huggingface_config as configs
from bert_tf.checkpoints import huggingface_tokenizer, names, rules, safetensors_files
from bert_tf.checkpoints.huggingface_models import DENSE, MODELS, model_in, model_of
from bert_tf.checkpoints.rules import Format, Source, Tensor
from bert_tf.checkpoints.weights import Weights, check_parts, only_head
from bert_tf.config import EncoderConfig
from bert_tf.errors import InputError, warn
from bert_tf.files import is_file, is_folder, read_json
from bert_tf.heads import HEADS
from bert_tf.models.albert.huggingface import check_groups, identity, take_projection
from bert_tf.models.eurobert import huggingface as huggingface_eurobert
from bert_tf.models.gpt import huggingface as huggingface_gpt
from bert_tf.models.modernbert import huggingface as huggingface_modernbert
from bert_tf.models.neobert import huggingface as huggingface_neobert
from bert_tf.models.t5 import huggingface as huggingface_t5
from bert_tf.models.xlnet import huggingface as huggingface_xlnet
from bert_tf.tokenization.library_settings import SETTINGS_FILE, settings_beside
from bert_tf.tokenization.tokenizer_json import has_one_segment

_POSITIONS = "embeddings.position_embeddings.weight"
_WORDS = "embeddings.word_embeddings.weight"
# The modules of models that have not BERT's names.
_OWN_FILES = {module.TYPE: module
              for module in (huggingface_eurobert, huggingface_gpt, huggingface_modernbert,
                             huggingface_neobert, huggingface_t5, huggingface_xlnet)}
# How the names of classes of transformers begin whose tokenizers give pairs no segments: in all
# versions, and since version 5, whose files name a backend.
_WITHOUT_SEGMENTS = ("Camembert", "DistilBert", "MPNet", "Roberta", "XLMRoberta")
_WITHOUT_SINCE_5 = ("Albert", "TokenizersBackend", "PreTrainedTokenizer")
# The classifiers of several tasks in one file.
_NUMBERED = r"classifier\.\d+\.(weight|bias)"
# Heads of whole texts where `is_decoder` is true.
_BLIND = (r"(classifier|cls\.seq_relationship)\.(weight|bias)", "of a classifier that reads the "
          "first token, which in a left-to-right network has seen no other; train a head with "
          "bert-finetune")


def _layers(model, task):
    """The layers of a classifier; of two, the first one takes the place of the pooler."""
    return model.classifier.get(task and HEADS[task].huggingface, ("classifier",))


def _table(model, task, prefix, notes=()):
    """The table of a type of models with the classifier `task`, if any; `prefix`: the encoder's."""
    *hidden, classifier = _layers(model, task)
    rows = [(ours, prefix + name, endings) for ours, name, endings in model.encoder
            if not (hidden and ours == "pooler/dense")]
    ignored = [(r"(\w+\.)?embeddings\.(position|token_type)_ids", "a constant, not a weight"),
               safetensors_files.COPIES,
               (_NUMBERED, "of several tasks' classifiers; keep one task's in the file to use it"),
               (r"identity\..*", "a layer that only copies the embeddings"),
               (r"unused\..*",
                "a bias that isn't used where the output matrix isn't the embedding table")]
    if hidden:
        rows.append(("pooler/dense", hidden[0], DENSE))
        ignored.append((r"(\w+\.)?pooler\.dense\..*", "a pooler that the classifier doesn't use"))
    if task:
        rows.append((f"{task}/dense", classifier, DENSE))
    elif model.others:
        ignored.append((r"classifier\.(weight|bias)", "of a classifier that its class in "
                        "transformers builds in another way; train a head with bert-finetune"))
    return Format((*rows, *model.heads), (*ignored, *model.ignored), notes=notes)


def find(path: str) -> str | None:
    """The safetensors file at `path`, or the index of several, or None."""
    files = [path]
    if is_folder(path):
        files = [os.path.join(path, f"model.safetensors{end}") for end in ("", ".index.json")]
    return next((file for file in files if is_file(file)
                 and file.endswith((".safetensors", ".safetensors.index.json"))
                 and not re.fullmatch(f"{rules.OWN}|{rules.QUANTISED}",
                                      os.path.basename(file))), None)


def _classifier(model, values, tensors, hint):
    """The head that `classifier` is; None without a classifier, or for one that the model's classes
    build in another way."""
    classes = values.get("architectures")
    if not isinstance(classes, list):
        classes = []
    candidates = [name for name in names.CLASSIFIERS if name not in model.others
                  and all(f"{layer}.bias" in tensors for layer in _layers(model, name))]
    named = {name for name in names.CLASSIFIERS
             if f"{model.classes}For{HEADS[name].huggingface}" in classes}
    if not candidates or named and named.isdisjoint(candidates):
        return None
    candidates.sort(key=lambda name: -len(_layers(model, name)))
    bias = tensors[f"{_layers(model, candidates[0])[-1]}.bias"]
    return configs.named_classifier(values, model.classes, candidates, bias.shape == (1,), hint)


def _standard_name(name, model):
    """Today's name of a tensor of an old file, or of a file of the bare encoder."""
    name = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
    for other, ours in model.spellings.items():
        name = re.sub(other, ours, name)
    if name.startswith(("embeddings", "encoder.", "transformer.", "pooler.")) and not any(
            name.startswith(f"{prefix}.") for _, prefix, _ in model.heads):
        return f"{model.prefix}{name}"
    return name


def _single_classifier(tensors):
    """Tensors by name, without the number of the only classifier, as StructBERT's files have it."""
    numbers = {name.split(".")[1] for name in tensors if re.match(_NUMBERED, name)}
    if len(numbers) != 1:
        return tensors
    return {re.sub(r"^classifier\.\d+\.", "classifier.", name): tensor
            for name, tensor in tensors.items()}


def _tie(tensors, model, tied, file):
    """Sets the copies of tied tensors aside; InputError if a copy differs."""
    words, decoder = model.prefix + _WORDS, model.output_weights
    apart = not tied and {decoder, words} <= tensors.keys() and not np.array_equal(
        tensors[decoder].read(), tensors[words].read())
    copies = {**dict.fromkeys((decoder, *model.copies), words),
              **dict.fromkeys(model.output_biases[1:], model.output_biases[0])}
    for copy, original in copies.items():
        if copy not in tensors or (apart and copy == decoder):
            continue
        if apart or original not in tensors:      # then the copy counts
            if original in tensors:
                tensors[f"unused.{original}"] = tensors[original]
            tensors[original] = tensors.pop(copy)
        else:
            safetensors_files.set_copy_aside(tensors, copy, original, file)


def _check_segments(config, vocabulary, path):
    """Raises InputError for a RoBERTa with BERT's tokenizer, which gives pairs segments; warns of
    another network whose tokenizer gives none."""
    beside = os.path.join(os.path.dirname(vocabulary), SETTINGS_FILE)
    settings = read_json(beside, {})
    inputs = settings.get("model_input_names")
    gives = not isinstance(inputs, list) or "token_type_ids" in inputs
    without = _WITHOUT_SEGMENTS
    if "backend" in settings:
        without += _WITHOUT_SINCE_5
    if "model_input_names" not in settings and str(
            settings.get("tokenizer_class")).startswith(without):
        gives = False
    if config.segment_types < 2 or gives == config.has_segments:
        return
    if not gives and not has_one_segment(vocabulary):
        warn(f"{beside}: model_input_names has no token_type_ids, so transformers gives both texts "
             "of a pair the segment 0; here the second text has the segment 1.")
    elif gives and os.path.basename(vocabulary) == "vocab.txt":
        raise InputError(f"{path}: type_vocab_size is {config.segment_types}, and the tokenizer of "
                         f"{vocabulary} tells the texts of a pair apart, but a roberta has no "
                         "segments here; for single texts, give tokenizer_config.json the "
                         'model_input_names ["input_ids", "attention_mask"].')


def _cut_positions(tensors, model, values):
    """Cuts the rows that no token uses from the table of positions, and returns notes on it."""
    unused, name = configs.unused_positions(model, values), model.prefix + _POSITIONS
    if not unused or name not in tensors or not tensors[name].shape:
        return ()
    count = tensors[name].shape[0]
    tensors[name] = tensors[name].cut(unused)
    return (f"{name}: the first {unused} of {count} rows are left out, since no token uses them.",)


def _differences(model, config, parts):
    """Yields sentences on the `parts` whose outputs are others in transformers."""
    activation = config.prediction_act or config.hidden_act
    if "masked_lm" in parts and model.exact_gelu and activation != "gelu_erf":
        yield ("The head masked_lm has the exact GELU in transformers, and here "
               f"{activation}; their logits differ.")
    yield from model.differences(config)
    if "pooler" in parts and config.is_causal:
        yield "The pooler reads the last token; that of transformers reads the first."


def _table_of(model, values, tensors, config, task=None):
    """The table of a file, where `task` counts as in `_classifier`."""
    head = _classifier(model, values, tensors, task)
    is_causal = config and config.is_causal
    if is_causal and head and HEADS[head].is_pooled:
        head = None
    seen = _table(model, head, model.prefix)
    if not is_causal:
        return seen
    return dataclasses.replace(
        seen, ignored=(*seen.ignored, _BLIND),
        rows=tuple(row for row in seen.rows if names.head(row[0]) != "next_sentence"))


def read(file: str) -> Source:
    path, config = rules.beside(file, "config.json"), None
    values = read_json(path) if path else {}
    tensors = safetensors_files.tensors(file)
    if (problem := values.get("problem_type")) not in (None, *configs.PROBLEMS):
        raise InputError(f"{path}: problem_type must be {' or '.join(configs.PROBLEMS)}, not "
                         f"{problem!r}.")
    if own := _OWN_FILES.get(str(values.get("model_type"))):
        return own.read(file, values, tensors)
    kind = configs.find_type(values, tensors, path, (*MODELS, *_OWN_FILES))
    model = model_in(kind, tensors)
    values, tensors = model.take(values, tensors, file)
    if path:
        described = values
        if "sequence_summary.summary.weight" not in tensors:        # which only choices have
            described = {key: value for key, value in values.items() if "summary_" not in key}
        config = configs.read_config(described, kind, path, model)
    vocabulary = rules.vocabulary_beside(file)
    if config and vocabulary:
        _check_segments(config, vocabulary, path)
    tensors = _single_classifier({_standard_name(name, model): tensor
                                for name, tensor in tensors.items()})
    _tie(tensors, model, values.get("tie_word_embeddings", True), file)
    config = take_projection(tensors, model, config)
    model.complete(tensors)
    notes = _cut_positions(tensors, model, values)
    if config:
        parts = ["masked_lm"] * (model.output_biases[0] in tensors)
        parts += ["pooler"] * any(".pooler." in f".{name}" for name in tensors)
        notes = (*notes, *_differences(model, config, parts))
    table = functools.partial(_table_of, model, values, tensors, config)
    return Source(file, config, tensors, table(), vocabulary,
                  settings_beside(file).get("do_lower_case"),
                  safetensors_files.labels(values, file), notes, table_of=table)


def table_for(weights: Weights) -> Format:
    if weights.config.model_type in _OWN_FILES:
        return _OWN_FILES[weights.config.model_type].table_for(weights)
    model = model_of(weights)
    if not model:
        raise InputError(f"{weights.source}: the format huggingface can't hold the model_type "
                         f"{weights.config.model_type} yet; choose another format.")
    _check_network(weights, model)
    task = only_head(weights, names.CLASSIFIERS,
                     "Hugging Face's checkpoints call each of them classifier")
    if task in model.others:
        raise InputError(f"{weights.source}: Hugging Face's {weights.config.model_type} has a "
                         f"hidden layer in the head {task} and would compute other outputs; give "
                         f"--leave_out={task}.")
    notes = (*_notes(weights, model), *_differences(model, weights.config, weights.heads))
    heads = {names.head(ours) for ours, *_ in model.heads} | {*names.CLASSIFIERS}
    if heads.isdisjoint(weights.heads):
        return _table(model, task, "", notes)
    return _table(model, task, model.prefix, notes)


def _notes(weights, model):
    """Yields sentences on what transformers makes of the files, and of texts."""
    padding, tokenizer = configs.padding_id(weights, model), weights.tokenizer
    if unused := configs.unused_positions(model, {"pad_token_id": padding}):
        yield (f"The table of positions begins with {unused} rows that no token uses, as "
               "transformers expects of this model.")
    if not tokenizer:
        return
    if unused and not configs.has_padding(tokenizer.vocabulary):
        yield (f"The vocabulary has no padding: transformers takes token {padding}, "
               f"{tokenizer.tokens([padding])[0]!r}, for it, and gives it no place.")
    if tokenizer.name == "sentencepiece" and tokenizer.has_choice_of_case and (
            "join_quotes" not in tokenizer.settings):
        yield "The tokenizer of transformers reads `` and '' as quotation marks."
    yield from huggingface_tokenizer.notes(weights)
    if weights.config.has_segments and tokenizer.name == "byte_bpe":
        yield ("The tokenizer of transformers gives both texts of a pair the segment 0; give the "
               "model token_type_ids.")


def _check_network(weights, model):
    """Raises InputError for a network that transformers can't build, or a head of a left-to-right
    one that reads the last token: transformers' classes give it the first, which saw no other."""
    if model.check:
        model.check(weights)
    else:
        own = {*model.keys, *model.defaults}
        if model.causal:
            own.add("directionality")
        if model.exact_gelu:
            own.add("prediction_act")
        if model.projection:
            own.add("project_embeddings")
        check_parts(weights, own)
    for key in (key for key, name in model.names.items() if not name):
        only = model.defaults.get(key, getattr(EncoderConfig, key))
        if getattr(weights.config, key) != only:
            raise InputError(f"{weights.source}: {key} is {getattr(weights.config, key)}, but in "
                             f"Hugging Face's {weights.config.model_type} it is always {only}; "
                             "choose another format.")
    if "num_hidden_groups" in model.keys:
        check_groups(weights.config, weights.source)
    for name in weights.heads:
        if weights.config.is_causal and name in HEADS and HEADS[name].is_pooled:
            raise InputError(f"{weights.source}: the head {name} of a left-to-right network reads "
                             "the last token, but the head of Hugging Face's class reads the "
                             f"first; give --leave_out={name}.")


def write(folder: str, weights: Weights, tensors: dict[str, Tensor]) -> None:
    if weights.config.model_type in _OWN_FILES:
        _OWN_FILES[weights.config.model_type].write(folder, weights, tensors)
        return
    described, model = configs.describe(weights), model_of(weights)
    unused = configs.unused_positions(model, described)
    values = {name: tensor.uncut(unused) if name.endswith(_POSITIONS) else tensor.read()
              for name, tensor in tensors.items()}
    values |= identity(model, weights.config, values)
    values, described = model.give(values, described, weights)
    if model.output_weights in values:      # which then isn't tied, and neither is its bias
        bias, *copies = model.output_biases
        values |= dict.fromkeys(copies, values[bias])
        if weights.origin and (unused := weights.origin.tensors.get(f"unused.{bias}")):
            values[bias] = unused.read()
    safetensors_files.write(folder, values, described)
    huggingface_tokenizer.write(folder, weights.tokenizer, weights.config.has_segments,
                                weights.config.max_position_embeddings, "tagging" in weights.heads)

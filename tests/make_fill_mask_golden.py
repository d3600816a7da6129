"""Writes tests/golden/fill_mask: what transformers answers to sentences with masks.

    python -m tests.make_fill_mask_golden FOLDER    # where transformers and torch are installed

FOLDER is as $BERT_TF_TEST_DATA. The models are tiny, with the released vocabularies; their weights
are drawn by `weights`, so that names and shapes are all that is kept of them. Does not import
bert_tf.
"""

import json
import math
import pathlib
import random
import re
import sys

import numpy as np

GOLDEN = pathlib.Path(__file__).parent / "golden" / "fill_mask"
TOP = 10
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 64, "max_position_embeddings": 130}
# The family, its vocabulary, and settings of its own.
MODELS = {
    "bert": ("Bert", "bert-base-uncased", {}),
    "bert_cased": ("Bert", "bert-base-cased", {}),
    "roberta": ("Roberta", "roberta-base", {"max_position_embeddings": 132, "type_vocab_size": 1}),
    "albert": ("Albert", "albert", {"embedding_size": 16}),
    "electra_generator": ("Electra", "bert-base-uncased", {"embedding_size": 16}),
}
_HARD = ["[MASK] is the capital.", "un[MASK]able [MASK][MASK]", "The end of the [MASK]",
         "[MASK] , [MASK]\tand  [MASK] !"]
_ACCENTS = [
    "Der König traf die Königin in Zürich.", "Él compró piñas y café en São Paulo.",
    "Voilà l'été où naïve façade était brûlée.", "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Ångström measured the Ørsted field near Malmö.", "The naïve coöperation of the résumé.",
    "Москва не сразу строилась, а долго.", "Ελλάδα είναι μια ωραία χώρα.",
    "Cafe\u0301 and re\u0301sume\u0301 with combining marks.",
    "Hà Nội là thủ đô của Việt Nam."]


def weights(shapes):
    """The tensors of a model, by name, drawn one after another."""
    rng = np.random.default_rng(1)
    return {name: (name.lower().replace("_", "").endswith("layernorm.weight")
                   + rng.normal(0, 0.3, shape)).astype("float32")
            for name, shape in sorted(shapes.items())}


def _sentences(folder):
    """200 sentences with one to three masks, some of them with accents."""
    rng = random.Random(7)
    books = [line.strip() for line in (folder / "text/books_sent.txt").open(encoding="utf-8")
             if 6 <= len(line.split()) <= 30]
    plain = [*(text for text in _ACCENTS for _ in range(3)), *rng.sample(books, 170)]
    found = list(_HARD)
    for number, line in enumerate(plain[:200 - len(found)]):
        words = [match.span() for match in re.finditer(r"\w+", line)]
        for first, last in sorted(rng.sample(words, min(1 + number % 3, len(words))), reverse=True):
            line = f"{line[:first]}[MASK]{line[last:]}"
        found.append(line)
    return found


def _tokenizer(family, vocabulary, transformers):
    """The tokenizer, whose mask takes the blank before it where the released one's does."""
    mask = {"Roberta": "<mask>", "Albert": "[MASK]"}.get(family)
    mask = mask and transformers.AddedToken(mask, lstrip=True, special=True, normalized=False)
    if family == "Roberta":
        return transformers.RobertaTokenizer(str(vocabulary / "vocab.json"),
                                             str(vocabulary / "merges.txt"), mask_token=mask)
    if family != "Albert":
        return transformers.BertTokenizerFast(str(vocabulary / "vocab.txt"),
                                              do_lower_case="uncased" in vocabulary.name)
    import tokenizers
    made = json.loads(transformers.AlbertTokenizer.from_pretrained(
        str(vocabulary)).backend_tokenizer.to_str())
    # In the released file the symbols of the model, such as "-", are no added tokens.
    made["added_tokens"] = made["added_tokens"][:5]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(json.dumps(made)), mask_token=mask,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{role}_token": token for role, token in (
            ("cls", "[CLS]"), ("sep", "[SEP]"), ("pad", "<pad>"), ("unk", "<unk>"))})


def _perplexity(model, tokenizer, text, torch):
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    total, places = 0.0, range(1, ids.shape[1] - 1)
    for place in places:
        masked = ids.clone()
        masked[0, place] = tokenizer.mask_token_id
        with torch.no_grad():
            total += torch.log_softmax(model(masked).logits[0, place], -1)[ids[0, place]].item()
    return math.exp(-total / len(places))


def make(name, sentences, folder):
    """Writes the answers of a model; returns its description."""
    import torch
    import transformers
    family, vocabulary, settings = MODELS[name]
    tokenizer = _tokenizer(family, folder / "vocabs" / vocabulary, transformers)
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(tokenizer), **{**_SIZES, **settings})
    has_next = family in ("Bert", "Albert")
    whole = getattr(transformers, f"{family}For{'PreTraining' if has_next else 'MaskedLM'}")(config)
    shapes = {key: tuple(value.shape) for key, value in whole.named_parameters()}
    drawn = {key: torch.from_numpy(value) for key, value in weights(shapes).items()}
    whole.load_state_dict(drawn, strict=False)
    model = getattr(transformers, f"{family}ForMaskedLM")(config)
    model.load_state_dict({key: value for key, value in whole.state_dict().items()
                           if key in model.state_dict()})
    model, whole = model.eval(), whole.eval()
    pipeline = transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer, top_k=TOP)
    found = []
    for sentence in sentences:
        answer = pipeline(sentence.replace("[MASK]", tokenizer.mask_token))
        found += [answer] if isinstance(answer[0], dict) else answer
    plain = [sentence.replace("[MASK]", "word") for sentence in sentences[4:44:2]]
    follows = []
    for pair in zip(plain, plain[1:]) if has_next else ():
        with torch.no_grad():
            out = whole(**tokenizer(*pair, return_tensors="pt"))
        logits = out.seq_relationship_logits if family == "Bert" else out.sop_logits
        follows.append(torch.softmax(logits[0], -1)[0].item())
    np.savez_compressed(
        GOLDEN / f"{name}.npz", follows=np.array(follows, "float32"),
        ids=np.array([[guess["token"] for guess in mask] for mask in found], "int32"),
        probabilities=np.array([[guess["score"] for guess in mask] for mask in found], "float32"),
        perplexity=np.array([_perplexity(model, tokenizer, text, torch) for text in plain]))
    return {"vocabulary": vocabulary, "config": config.to_diff_dict(), "shapes": shapes,
            "plain": plain}


def main(folder):
    GOLDEN.mkdir(exist_ok=True)
    sentences = _sentences(pathlib.Path(folder))
    plain, models = None, {}
    for name in MODELS:
        models[name] = make(name, sentences, pathlib.Path(folder))
        plain = models[name].pop("plain")
        print(name)
    (GOLDEN / "cases.json").write_text(json.dumps(
        {"sentences": sentences, "plain": plain, "models": models}, ensure_ascii=False,
        indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])

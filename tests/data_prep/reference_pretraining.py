"""google-research/bert create_pretraining_data.py, written again with lists and random.Random.

It shares no code with bert_tf but the names of the flags, which `flags` carries as attributes.
"""

import collections
import random


def features(files, tokenize, vocab, flags):
    """The features of all records in the order in which they are written. `files` are their
    contents, `tokenize` makes a line its tokens, `vocab` has ids in the order of the file."""
    rng = random.Random(flags.random_seed)
    documents = read_documents(files, tokenize)
    rng.shuffle(documents)
    found = []
    for _ in range(flags.dupe_factor):
        for number in range(len(documents)):
            for first, second, is_random in pairs(documents, number, rng, flags):
                tokens = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
                segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
                masked, labels = mask(tokens, rng, list(vocab), flags)
                found.append((masked, segments, labels, is_random))
    rng.shuffle(found)
    return [record(vocab, flags, *instance) for instance in found]


def read_documents(files, tokenize):
    documents = [[]]
    for content in files:
        lines = content.replace(b"\r", b"").decode().split("\n")
        if not lines[-1]:
            lines.pop()     # there is no line after the last newline
        for line in map(str.strip, lines):
            if not line:
                documents.append([])
            elif tokens := tokenize(line):
                documents[-1].append(tokens)
    return [document for document in documents if document]


def pairs(documents, number, rng, flags, swaps=False):
    """(first, second, label) of one document; ALBERT `swaps` them for its negatives."""
    limit = target = flags.max_seq_length - 3
    if rng.random() < flags.short_seq_prob:
        target = rng.randint(2, limit)
    sentences = collections.deque(documents[number])
    chunk = []
    while sentences:
        chunk.append(sentences.popleft())
        if sentences and sum(map(len, chunk)) < target:
            continue
        cut = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        first, second = sum(chunk[:cut], []), sum(chunk[cut:], [])
        is_negative = len(chunk) == 1 or rng.random() < 0.5
        if is_negative and swaps and len(chunk) > 1:
            first, second = second, first
        elif is_negative:
            sentences.extendleft(reversed(chunk[cut:]))
            second = random_sentences(documents, number, target - len(first), rng)
        truncate(first := collections.deque(first), second := collections.deque(second), limit, rng)
        yield first, second, is_negative
        chunk = []


def random_sentences(documents, number, wanted, rng):
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != number:
            break
    tokens = []
    for sentence in documents[other][rng.randint(0, len(documents[other]) - 1):]:
        tokens += sentence
        if len(tokens) >= wanted:
            break
    return tokens


def truncate(first, second, limit, rng):
    while len(first) + len(second) > limit:
        longer = first if len(first) > len(second) else second
        if rng.random() < 0.5:
            longer.popleft()
        else:
            longer.pop()


def mask(tokens, rng, words, flags):
    groups = []
    for position, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if flags.do_whole_word_mask and groups and token.startswith("##"):
            groups[-1].append(position)
        else:
            groups.append([position])
    rng.shuffle(groups)
    quota = min(flags.max_predictions_per_seq,
                max(1, int(round(len(tokens) * flags.masked_lm_prob))))
    masked, labels = list(tokens), []
    for group in groups:
        if len(labels) + len(group) > quota:
            continue
        for position in group:
            if rng.random() < 0.8:
                masked[position] = "[MASK]"
            elif rng.random() >= 0.5:
                masked[position] = words[rng.randint(0, len(words) - 1)]
            labels.append((position, tokens[position]))
    return masked, sorted(labels)


def record(vocab, flags, tokens, segments, labels, is_random):
    def filled(values, length):
        return [*values, *[0] * (length - len(values))]

    size, slots = flags.max_seq_length, flags.max_predictions_per_seq
    return {
        "input_ids": filled([vocab[token] for token in tokens], size),
        "input_mask": filled([1] * len(tokens), size),
        "segment_ids": filled(segments, size),
        "masked_lm_positions": filled([position for position, _ in labels], slots),
        "masked_lm_ids": filled([vocab[token] for _, token in labels], slots),
        "masked_lm_weights": filled([1.0] * len(labels), slots),
        "next_sentence_labels": [int(is_random)],
    }

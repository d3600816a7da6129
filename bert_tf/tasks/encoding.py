"""From examples to record features, many at once, as google-research/bert run_classifier.py.

Shapes: B examples, S sequence, C choices, L labels. The features are those of
`bert_tf.data.features.FINETUNING`.
"""

import itertools

import numpy as np

from bert_tf.data.features import pack_pairs, truncate_pairs
from bert_tf.data.windows import cut_windows


def encode(task, examples, tokenizer, max_seq_length, document_context=False):
    """The features of examples.

    Args:
        task: `Task`.
        examples: list of `Example`; the choices of all must be as many.
        tokenizer: has `encode_lines(lines) -> (ids int32 [T], lengths [number of lines])`.
        max_seq_length: S.
        document_context: whether a sentence to tag is seen with what its document has around it.

    Returns:
        dict of arrays, a row an example; in tagging, a row a window: read row by row, the positions
        whose label_weights is 1 are the words of the sentences in order.
        The number of examples that were cut short to fit.
    """
    if task.kind == "tagging":
        features, cut = _encode_words(examples, tokenizer, max_seq_length, document_context), 0
    elif task.kind == "multiple_choice":
        pairs = [(e.texts[0], choice) for e in examples for choice in e.texts[1:]]
        features, is_cut = _encode_pairs(pairs, tokenizer, max_seq_length)
        features = {name: rows.reshape(len(examples), -1) for name, rows in features.items()}
        cut = is_cut.reshape(len(examples), -1).any(1).sum()
    else:
        features, is_cut = _encode_pairs([e.texts for e in examples], tokenizer, max_seq_length)
        cut = is_cut.sum()
    if task.kind != "tagging":
        dtype = np.float32 if task.kind == "regression" else np.int64
        labels = np.array([example.label for example in examples], dtype)
        features["label_ids"] = labels.reshape(len(examples), -1)
    features["is_real_example"] = np.ones([len(features["input_ids"]), 1], np.int64)
    return features, int(cut)


def _encode_pairs(texts, tokenizer, max_seq_length):
    """dict of input_ids, input_mask, segment_ids [B, S], and whether each was cut, bool [B].

    Args:
        texts: list of B texts or pairs of texts.
    """
    tokens, lengths = tokenizer.encode_lines([text for pair in texts for text in pair])
    lengths = lengths.reshape(len(texts), -1)
    starts = np.cumsum(lengths).reshape(lengths.shape) - lengths
    if lengths.shape[1] == 1:
        starts, lengths = (np.pad(run, ((0, 0), (0, 1))) for run in (starts, lengths))
    layout = tokenizer.vocabulary.layout
    kept = np.stack(truncate_pairs(*lengths.T, max_seq_length, layout), 1)
    runs = starts[:, 0], kept[:, 0], starts[:, 1], kept[:, 1]
    return (pack_pairs(tokens, *runs, max_seq_length, tokenizer.vocabulary),
            (kept < lengths).any(1))


def _encode_words(examples, tokenizer, max_seq_length, document_context):
    """The features of all windows, but for is_real_example."""
    words = [word for example in examples for word in example.texts]
    tokens, pieces = tokenizer.encode_lines(words)
    # A word without a token, a lone control character say, still has a label.
    gaps = np.cumsum(pieces)[pieces == 0]
    tokens = np.insert(tokens, gaps, tokenizer.vocabulary.unk_id)
    pieces = np.maximum(pieces, 1)

    word_starts = np.cumsum(pieces) - pieces
    labels, is_first = np.zeros([2, len(tokens)], np.int64)
    labels[word_starts] = list(itertools.chain.from_iterable(e.label for e in examples))
    is_first[word_starts] = 1

    ends = np.append(word_starts, len(tokens))[np.cumsum([len(e.texts) for e in examples])]
    sentences = list(zip([0, *ends.tolist()], ends.tolist()))
    bounds = _documents(examples, sentences) if document_context else sentences
    layout = tokenizer.vocabulary.layout
    room = layout.room(max_seq_length, pair=False)
    windows = np.array([(w.start, w.end, w.first, w.last)
                        for sentence, bound in zip(sentences, bounds)
                        for w in cut_windows(*sentence, *bound, room)])
    start, end, first, last = windows.T
    none = np.zeros_like(start)
    features = pack_pairs(tokens, start, end - start, none, none, max_seq_length,
                          tokenizer.vocabulary)
    # Where each position stands in `tokens`; [CLS], [SEP] and padding answer for nothing.
    source = start[:, None] - layout.before + np.arange(max_seq_length)
    answers = (source >= first[:, None]) & (source < last[:, None])
    source = np.where(answers, source, 0)
    return {**features, "label_ids": np.where(answers, labels[source], 0),
            "label_weights": answers & (is_first[source] == 1)}


def _documents(examples, sentences):
    """For each sentence the bounds of its document."""
    bounds = []
    grouped = itertools.groupby(zip(examples, sentences), lambda pair: pair[0].document)
    for _, group in grouped:
        group = [sentence for _, sentence in group]
        bounds += [(group[0][0], group[-1][1])] * len(group)
    return bounds

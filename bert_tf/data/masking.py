"""Masked language model predictions, drawn as the original's `create_masked_lm_predictions`.

Drawing and placing are apart. `draw` advances the random stream by what one instance takes and
notes the choices; `place` turns the notes of thousands of instances into arrays at once.
"""

import numpy as np

MASK, KEEP = -2, -1     # replacements that are not token ids


class SubwordMasking:
    """Every sub-word is a candidate: 15% of the tokens, replaced 80/10/10.

    Args:
        stream: `PythonRandom`, shared with the pairing.
        vocabulary: `Vocabulary`; random replacements are drawn from all of it.
        masked_lm_prob: share of the sequence, special tokens counted, to predict.
        max_predictions_per_seq: upper bound P of predictions.
        max_tokens: upper bound of candidates (the sequence without special tokens).
    """

    def __init__(self, stream, vocabulary, masked_lm_prob, max_predictions_per_seq, max_tokens):
        self._stream = stream
        # The original draws a token of the vocabulary's dict, then looks up its id: not the same
        # as an id where a token stands twice, as the empty one does in the released Chinese file.
        self._drawable = list(vocabulary.ids.values())
        self._layout, self._max_tokens = vocabulary.layout, max_tokens
        self._predictions = max_predictions_per_seq
        special = self._layout.special(pair=True)
        self._quota = [min(max_predictions_per_seq,
                           max(1, int(round((n + special) * masked_lm_prob))))
                       for n in range(max_tokens + 1)]
        self._forget()

    def _forget(self):
        self._starts, self._sizes, self._a_lengths = [], [], []
        self._counts, self._replacements = [], []

    def draw(self, a_start, a_length, b_start, b_length):
        """Draws the predictions of one pair (slices of the token array)."""
        del a_start, b_start    # which tokens they are makes no difference here
        n = a_length + b_length
        self._sizes.append(n)
        self._starts.append(self._stream.skip_shuffle(n, self._max_tokens))
        self._a_lengths.append(a_length)
        self._counts.append(min(self._quota[n], n))
        self._draw_replacements(self._counts[-1])

    def _draw_replacements(self, count):
        """80% [MASK]; else half of the time the token itself, half of the time any other."""
        stream, uniforms, note = self._stream, self._stream.uniforms, self._replacements.append
        drawable = self._drawable
        position = stream.position
        for _ in range(count):
            if uniforms[position] < 0.8:
                note(MASK)
                position += 2
            elif uniforms[position + 2] < 0.5:
                note(KEEP)
                position += 4
            else:
                stream.position = position + 4
                note(drawable[stream.below(len(drawable))])
                position = stream.position
        stream.position = position

    def _candidates(self, chosen):
        """int [M, P]: the candidate (0 .. a_length + b_length - 1) of each chosen slot."""
        order = self._stream.replay_shuffles(self._starts, self._sizes)[:self._predictions]
        candidates = np.zeros(chosen.shape, np.int64)
        candidates[:, :len(order)] = order.T
        return candidates

    def place(self):
        """The predictions of the M pairs drawn since the last call, by position.

        Returns:
            positions: uint16 [M, P], in the packed sequence; 0 where unused.
            replacements: int32 [M, P]: a token id, MASK or KEEP.
            counts: uint16 [M], how many of the P are used.
        """
        counts = np.array(self._counts, np.uint16)
        chosen = np.arange(self._predictions) < counts[:, None]
        if not len(counts):
            return np.zeros(chosen.shape, np.uint16), np.zeros(chosen.shape, np.int32), counts
        candidates = self._candidates(chosen)
        in_b = candidates >= np.array(self._a_lengths)[:, None]
        replacements = np.full(chosen.shape, KEEP, np.int32)
        replacements[chosen] = self._replacements
        positions = candidates + self._layout.before + in_b * self._layout.between
        positions = np.where(chosen, positions, np.iinfo(np.int64).max)     # the unused come last
        by_position = np.argsort(positions, axis=1)
        positions = np.take_along_axis(np.where(chosen, positions, 0), by_position, 1)
        replacements = np.take_along_axis(replacements, by_position, 1)
        self._forget()
        return positions.astype(np.uint16), replacements, counts


class WholeWordMasking(SubwordMasking):
    """The sub-words of a word are predicted together or not at all (`--do_whole_word_mask`).

    Args:
        continues_word: bytes [T] beside the token array: 1 where a sub-word starts with "##".
    """

    def __init__(self, *args, continues_word):
        super().__init__(*args)
        self._continues_word = continues_word
        self._chosen = []

    def draw(self, a_start, a_length, b_start, b_length):
        flags = (self._continues_word[a_start:a_start + a_length]
                 + self._continues_word[b_start:b_start + b_length])
        words = []
        for candidate, continues in enumerate(flags):
            if continues and words:
                words[-1].append(candidate)
            else:
                words.append([candidate])
        self._stream.shuffle(words)

        quota, chosen = self._quota[len(flags)], []
        for word in words:
            if len(chosen) >= quota:
                break
            # A word that would go beyond the quota is passed over, as in the original.
            if len(chosen) + len(word) <= quota:
                chosen += word
        self._chosen += chosen
        self._a_lengths.append(a_length)
        self._counts.append(len(chosen))
        self._draw_replacements(len(chosen))

    def _candidates(self, chosen):
        candidates = np.zeros(chosen.shape, np.int64)
        candidates[chosen] = self._chosen
        self._chosen = []
        return candidates

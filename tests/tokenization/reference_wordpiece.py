"""WordPiece as slowly and plainly as it can be written: what the fast tokenizers are held against.

It shares no code with bert_tf. Every character carries its position in the text from the start.
"""

import unicodedata


def encode(text, vocabulary, lower):
    """The ids and (start, end) offsets of `text`; `vocabulary` maps tokens to ids."""
    ids, offsets = [], []
    for letters in words(text, lower):
        word_ids, spans = _pieces([char for char, _ in letters], vocabulary)
        for index, (first, last) in zip(word_ids, spans):
            places = [place for _, place in letters[first:last]]
            ids.append(index)
            offsets.append((min(places), max(places) + 1))
    return ids, offsets


def words(text, lower):
    """Lists of (character, position), one for each word that is cut into pieces."""
    tokens, token = [], []
    for place, char in enumerate(text):
        kind = unicodedata.category(char)
        if char in "\t\n\r" or kind == "Zs" or char in "\u2028\u2029":
            tokens.append(token)
            token = []
        elif char == "\ufffd" or kind == "Cc" or kind == "Cf":
            continue
        elif _is_ideograph(char):
            tokens += [token, [(char, place)]]
            token = []
        else:
            token.append((char, place))
    tokens.append(token)
    return [word for token in tokens for word in _cut(_fold(token) if lower else token)]


def _is_ideograph(char):
    code = ord(char)
    unified = 0x4E00 <= code < 0xA000
    extension_a = 0x3400 <= code < 0x4DC0
    extensions_b_to_e = (0x20000 <= code < 0x2CEB0 and not 0x2A6E0 <= code < 0x2A700)
    compatibility = 0xF900 <= code < 0xFB00 or 0x2F800 <= code < 0x2FA20
    return unified or extension_a or extensions_b_to_e or compatibility


def _fold(token):
    whole = "".join(char for char, _ in token).lower()
    places = []
    for char, place in token:
        places += [place] * len(char.lower())
    letters = []
    for char, place in zip(whole, places):
        for part in unicodedata.normalize("NFD", char):
            # Canonical ordering by insertion: a mark moves left past marks of a higher class.
            rank, slot = unicodedata.combining(part), len(letters)
            while rank and slot and unicodedata.combining(letters[slot - 1][0]) > rank:
                slot -= 1
            letters.insert(slot, (part, place))
    return [(char, place) for char, place in letters if unicodedata.category(char) != "Mn"]


def _cut(letters):
    result = [[]]
    for char, place in letters:
        symbol = ord(char) < 128 and char.isprintable() and not char.isalnum()
        if symbol or unicodedata.category(char)[0] == "P":
            result += [[(char, place)], []]
        else:
            result[-1].append((char, place))
    return [word for word in result if word]


def _pieces(chars, vocabulary):
    unknown = [vocabulary["[UNK]"]], [(0, len(chars))]
    if len(chars) > 200:
        return unknown
    ids, spans = [], []
    rest = 0
    while rest < len(chars):
        for last in range(len(chars), rest, -1):
            piece = ("##" if rest else "") + "".join(chars[rest:last])
            if piece in vocabulary:
                ids.append(vocabulary[piece])
                spans.append((rest, last))
                rest = last
                break
        else:
            return unknown
    return ids, spans

"""Candidates for a pronoun: the schemas of WSC and WNLI, and other candidates in their texts
(arXiv:1907.11692, section 5.1; facebookresearch/fairseq, examples/roberta/wsc).

Candidates are found by words alone, where the original has spaCy's noun chunks: a determiner and
the words up to the next function word, and names in capitals; else each content word.
"""

import re
import typing

_PRONOUNS = frozenset("he she they it her his their them him its hers theirs".split())
_DETERMINERS = frozenset(
    "a an the my your our this that these those some any each every no both all another".split())
_FUNCTION = _PRONOUNS | _DETERMINERS | frozenset(
    "i you we me us who whom whose which what where when while why how if because so since though "
    "although unless until before after as than and or but nor not of in on at to from with "
    "without for by about into onto over under through between against during up down out off "
    "away back is are was were be been being am do does did done have has had having will would "
    "shall should can could may might must very too also just still even only quite rather then "
    "there here now it's didn't don't doesn't wasn't isn't couldn't wouldn't can't one's".split())
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s?$")
_LONGEST = 4        # words of a candidate after its determiner


class Schema(typing.NamedTuple):
    """A text with a pronoun.

    Attributes:
        before, after: the text before and after the pronoun.
        query: the phrase that it may refer to.
    """

    before: str
    after: str
    query: str


def schema_of(premise: str, hypothesis: str) -> Schema:
    """Returns the schema of a pair of WNLI, whose hypothesis is a part of the premise with a phrase
    in place of a pronoun: the premise's pronoun with the most words around it that the hypothesis
    has, too. Without such a pronoun the hypothesis follows the premise."""
    words, others = (list(_WORD.finditer(text)) for text in (premise, hypothesis))
    whole, part = ([word.group().lower() for word in matches] for matches in (words, others))
    best = -1, Schema(f"{premise} ", "", hypothesis)
    # Fewer equal words before the pronoun may leave more behind it, as where the query is the noun
    # before the pronoun.
    places = [(place, left) for place, word in enumerate(whole) if word in _PRONOUNS
              for left in range(min(place, len(part)) + 1)
              if whole[place - left:place] == part[:left]]
    for place, left in places:
        rest = len(part) - left
        right = max((size for size in range(min(len(whole) - place - 1, rest - 1) + 1)
                     if part[len(part) - size:] == whole[place + 1:place + 1 + size]), default=0)
        if left + right > best[0] and rest > right:
            query = hypothesis[others[left].start():others[len(part) - right - 1].end()]
            start, end = words[place].span()
            best = left + right, Schema(premise[:start], premise[end:], _POSSESSIVE.sub("", query))
    return best[1]


def candidates(schema: Schema) -> list[str]:
    """Returns the other phrases that the pronoun may refer to, each once, in the order of the text.
    A phrase that is a part of the query, or has it as a part, is left out."""
    texts = schema.before, schema.after
    phrases = (phrase for text in texts for phrase in _phrases(text))
    words = (word.group() for text in texts for word in _WORD.finditer(text)
             if word.group().lower() not in _FUNCTION)
    return _others(phrases, schema.query) or _others(words, schema.query)


def _others(phrases, query):
    """The phrases that differ from a query and each other by more than a determiner or a part."""
    distinct, asked = {}, _core(query)
    for phrase in phrases:
        core = _core(phrase)
        if core and core not in asked and asked not in core:
            distinct.setdefault(core, _POSSESSIVE.sub("", phrase))
    return list(distinct.values())


def _core(phrase):
    """Returns a phrase in lower case, without its determiner and a possessive's ending."""
    words = _POSSESSIVE.sub("", phrase.lower()).split()
    return " ".join(words[1:] if words and words[0] in _DETERMINERS | _PRONOUNS else words)


def _phrases(text):
    """Yields the phrases of a text that look like nouns with a determiner, or like names."""
    words = list(_WORD.finditer(text))
    place = 0
    while place < len(words):
        word = words[place].group()
        if word.lower() in _DETERMINERS - {"that"}:     # which mostly begins a clause
            end = _end(text, words, place + 1, lambda other: other.lower() not in _FUNCTION)
            if end > place + 1:
                yield text[words[place].start():words[end - 1].end()]
        elif word[0].isupper() and word.lower() not in _FUNCTION:
            end = _end(text, words, place, lambda other: other[0].isupper())
            yield text[words[place].start():words[end - 1].end()]
        else:
            end = place + 1
        place = max(end, place + 1)


def _end(text, words, first, belongs):
    """Returns the place after the last word from `first` on that belongs to a phrase, between whose
    words there are blanks alone."""
    place = first
    while place < min(len(words), first + _LONGEST) and belongs(words[place].group()) and (
            place == first or not text[words[place - 1].end():words[place].start()].strip(" .")):
        place += 1
    return place

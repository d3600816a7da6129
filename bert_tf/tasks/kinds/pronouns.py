"""Pronouns whose candidates a masked language model ranks (arXiv:1905.06290; arXiv:1907.11692,
section 5.1; facebookresearch/fairseq, examples/roberta/wsc). N examples, S sequence."""

import re
import typing

import numpy as np

from bert_tf.data.records.features import FINETUNING, KNOWN, MASKS
from bert_tf.errors import InputError
from bert_tf.tasks.kinds import labelled
from bert_tf.tasks.kinds.candidates import group_starts
from bert_tf.tasks.kinds.sentence import MultipleChoice
from bert_tf.tokenization.encoding import pack_parts

_TOKENS = 24        # of a candidate; longer ones lose their last ones
_PAIR = 2
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


class PronounRanking(MultipleChoice):
    """Whether a pronoun refers to a phrase: whether a masked language model finds no other
    candidate in the text likelier in its place. An example is a pair of the phrase and another
    candidate; its texts are the text before the pronoun, the text after it, and both candidates.
    Its `document` is the number of the line, its label 0 where the phrase is right. Other lines do
    not teach, as in the original."""

    name, title = "pronoun_ranking", "pronouns whose candidates are ranked"
    features = (*FINETUNING["multiple_choice"],
                *(KNOWN[feature.name].on(_PAIR * _TOKENS) for feature in MASKS))
    own_metrics: tuple = ()
    needs_choices = labels_are_classes = labels_may_be_far = smooths = False
    has_labels = is_grouped = keeps_head = True
    takes_ties = True       # the original takes a phrase that is as likely as the others
    texts = (4, 4, "a tuple of four: what stands before and after a pronoun, and two candidates")

    def _head(self, task, options):
        return "candidate_lm", {"name": "masked_lm"}

    def check_options(self, options, max_seq_length, tokenizer):
        if tokenizer.vocabulary.mask_id is None:
            raise InputError("a masked LM must rank the candidates, but the vocabulary has no mask "
                             "token; name another --init_checkpoint.")
        if max_seq_length < 2 * _TOKENS:
            raise InputError(f"--max_seq_length is {max_seq_length}; it must be at least "
                             f"{2 * _TOKENS}, so that a candidate and its context fit.")

    def gather(self, task, rows, path, omissions):
        """Yields a row for each other candidate; without any, one row with the phrase twice."""
        for number, (line, texts, raw, _) in enumerate(rows):
            if len(texts) == 2:
                schema = schema_of(*texts)
            else:
                schema = Schema(texts[3], texts[5], texts[1])
            for other in candidates(schema) or [schema.query]:
                yield line, [*schema, other], raw, number

    def label_of(self, task, ids, texts, raw, where):
        return 1 - labelled.label_id(raw, ids, where)

    def counted(self, label):
        return (1 - label,)

    def label_limit(self, described):
        return _PAIR

    def num_choices(self, example):
        return _PAIR

    def encode(self, task, examples, tokenizer, max_seq_length, options=None):
        """Makes a row of two sequences. Each has, in place of the pronoun, a mask for every token
        of a candidate. A longer text keeps the words around the pronoun."""
        vocabulary = tokenizer.vocabulary
        layout, texts = vocabulary.layout, []
        for example in examples:
            before, after, *both = example.texts
            blank = " " if before[-1:].isspace() else ""
            begin = str if before else tokenizer.at_start
            texts += [tokenizer.at_start(before.rstrip()), after,
                      *(begin(blank + candidate) for candidate in both)]
        ids, lengths = tokenizer.encode_parts(texts)
        parts = iter(np.split(ids, np.cumsum(lengths)[:-1]))
        sequences, is_cut = [], np.zeros(len(examples), bool)
        masks = {name: np.zeros((len(examples) * _PAIR, _TOKENS), np.int64) for name in (
            feature.name for feature in MASKS)}
        for number in range(len(examples)):
            before, after = next(parts), next(parts)
            for place in range(_PAIR):
                candidate = next(parts)
                tokens = candidate[:_TOKENS]
                room = layout.room(max_seq_length, False) - len(tokens)
                right = min(len(after), max(room // 2, room - len(before)))
                left = before[max(len(before) - (room - right), 0):]
                is_cut[number] |= len(tokens) < len(candidate) or (
                    len(left) + right < len(before) + len(after))
                sequences.append(np.concatenate(
                    [left, np.full(len(tokens), vocabulary.mask_id), after[:right]]))
                row, used = _PAIR * number + place, slice(len(tokens))
                masks["masked_lm_positions"][row, used] = (
                    layout.before + len(left) + np.arange(len(tokens)))
                masks["masked_lm_ids"][row, used] = tokens
                masks["masked_lm_weights"][row, used] = 1
        packed = pack_parts([(sequence, ()) for sequence in sequences], max_seq_length, vocabulary)
        features = {name: rows.reshape(len(examples), -1)
                    for name, rows in (packed | masks).items()}
        features["masked_lm_weights"] = features["masked_lm_weights"].astype(np.float32)
        return labelled.with_label_ids(features, examples), int(is_cut.sum())

    def decode(self, task, answers, examples, features):
        """Returns whether the phrase of each example's line is at least as likely as all of its
        candidates: 0 or 1, int [N]."""
        logits, starts = answers["logits"], group_starts(examples)
        is_right = np.logical_and.reduceat(logits[:, 0] >= logits[:, 1], starts)
        return is_right.astype(np.int64)[np.cumsum(np.isin(np.arange(len(examples)), starts)) - 1]

    def targets(self, task, examples):
        return 1 - super().targets(task, examples)

    def compared(self, task, examples, predicted):
        starts = group_starts(examples)
        return self.targets(task, examples)[starts], predicted[starts]

    def score(self, task, path, examples, predicted):
        starts = group_starts(examples)
        lines = [examples[start] for start in starts]
        return super().score(task, path, lines, predicted[starts])

    is_degenerate = labelled.LabelledKind.is_degenerate

    def describe(self, task, example, prediction, probabilities):
        return {"line": example.document, "label": task.labels[prediction],
                "candidates": example.texts[2:], "probabilities": labelled.rounded(probabilities)}

    def write_more(self, folder, source, examples, predicted, answers, is_test):
        if not is_test:
            return []
        return labelled.write_whole(folder, source, predicted[group_starts(examples)])

    def submission(self, task, predictions):
        return [task.labels[index] for index in predictions]


class Schema(typing.NamedTuple):
    """The text before and after a pronoun, and the phrase that it may refer to."""

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
    A phrase that is a part of the query, or has it as a part, is left out.

    They are found by words alone, where the original has spaCy's noun chunks: a determiner and the
    words up to the next function word, and names in capitals; else each content word."""
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

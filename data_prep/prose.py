"""Prose out of marked-up text. Written for docstrings."""

import inspect
import itertools
import re

_HEADING_MARK = "\0"
_ANY = 1 << 16      # deeper than any line
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_HEADING = re.compile(r"^(.*)\n[ \t]*([-=~^#*\"'`+])\2{2,}[ \t]*$", re.M)
# Sections of lists and code, without prose; numpy underlines their names.
_LISTS = (r"Parameters|Other Parameters|Args|Arguments|Keyword Arguments?|Kwargs|Attributes|Methods"
          r"|Returns?|Yields?|Raises|Warns|Inputs?|Outputs?|Input shape|Output shape|Call arguments"
          r"|Reference|References|Examples?|Usage|Example usage|See Also|Routines|Functions|Classes"
          r"|Call signatures?|Properties|Constants|Exceptions|Options")
_LIST_HEADING = re.compile(rf"\s*(?:{_LISTS})\s*", re.I)
_LIST_LABEL = re.compile(rf"[#*\s]*(?:{_LISTS})\**\s*:+\**\s*", re.I)
_DIRECTIVE = re.compile(r"\.\. ?(\w[\w-]*)?")
_ADMONITIONS = {"note", "warning", "tip", "important", "caution", "hint", "attention"}
_NOT_PROSE = re.compile(
    r">>>|\.\.\. |\$ |@|:\w[^:]*:(\s|$)|[|+]|={3}|-{3}|\[\d+\]|#|%|Copyright\b|\(c\)|Author|License"
    r"|[\w.*]+\s+:\s|\w[\w.]*\(.*\)\s*(->.*)?:?$|\w[\w.]*:\s|\w+\s*=\s|import |from \S+ import")
_ITEM = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)])\s+")
_MARKUP = [(re.compile(pattern), new) for pattern, new in (
    (r":[\w:+-]+:`~?(?:[^`<]*\.)?!?([^`<]+?)(?:\s*<[^`]*>)?`", r"\1"),     # :class:`~pkg.Name`
    (r"`([^`<]+?)\s*<[^`]*>`_*", r"\1"), (r"\[([^\]]+)\]\([^)]*\)", r"\1"),     # links
    (r"``?([^`]+)``?_*", r"\1"), (r"\*\*(\S[^*]*)\*\*", r"\1"), (r"(?<!\w)\*(\S[^*]*)\*", r"\1"),
    (r"\s*\[[\w.-]+\]_", ""), (r"\s+", " "))]
_WORD = re.compile(r"[\"'“‘(\[]*[A-Za-z]+(?:['’-][A-Za-z]+)*[\"'”’)\],;:.!?]*")
_OPENING = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ\"'(")
_CODE = re.compile(r"\\|[{}<>]|==|://|__\w")
_COMMON = frozenset("the a an is are of to and in this that for it be by as with or not from on if "
                    "can will was has have when which at you".split())


def paragraphs(text):
    """Lists the paragraphs of prose in a docstring, one line each.

    Code, doctests, tables, headings, lists of parameters and directives are left out; an item of a
    list is a paragraph.
    """
    text = _FENCE.sub("", inspect.cleandoc(text))
    text = _HEADING.sub(rf"\n{_HEADING_MARK}\1\n", text)
    passages = []
    in_list = False         # under the heading of a section that is not prose
    shallowest = _ANY       # the indent at which text that belongs to an opener ends
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.strip("\n").split("\n")
        first, indent = lines[0].strip(), _indent(lines[0])
        if first.startswith(_HEADING_MARK):
            in_list, shallowest = bool(_LIST_HEADING.fullmatch(first[1:])), _ANY
            lines = lines[1:]
        elif indent <= shallowest:
            shallowest = _ANY
        directive = _DIRECTIVE.match(first)
        if in_list or indent > shallowest:
            continue
        if directive and directive[1] in _ADMONITIONS:
            lines = [line.strip() for line in lines[1:]]
        elif directive:
            shallowest = indent
            continue
        elif indent >= 2 and not _ITEM.match(first):
            continue
        shallowest = _ANY
        label = next((line for line in lines if _LIST_LABEL.fullmatch(line)), None)
        if label is not None:       # of a list, which ends at the label's indent
            lines, shallowest = lines[:lines.index(label)], _indent(label)
        elif lines and lines[-1].endswith("::"):        # code is announced
            shallowest = indent
        passages += _join(lines)
    return passages


def _indent(line):
    return len(line) - len(line.lstrip())


def _join(lines):
    """The paragraphs of a block without blank lines: one, or one for each item of a list."""
    groups = [[]]
    for line in lines:
        bare = line.strip()
        item = _ITEM.match(bare)
        if item:
            groups.append([bare[item.end():]])
        elif line[:1].isspace() and len(groups) == 1 and len(groups[0]) > 0:
            break       # code or a hanging definition under a line of prose
        else:
            groups[-1].append(bare)
    prose = itertools.takewhile(
        lambda group: not any(map(_NOT_PROSE.match, group)), filter(None, groups))
    return list(filter(None, (_plain(" ".join(group)) for group in prose)))


def _plain(text):
    for pattern, new in _MARKUP:
        text = pattern.sub(new, text)
    return text.strip()


def is_english(sentence):
    """Returns whether this is a whole English sentence of words, not code or a fragment."""
    words = sentence.split()
    return (4 <= len(words) <= 100 and sentence[0] in _OPENING and sentence.isascii()
            and not _CODE.search(sentence)
            and sentence.rstrip("\"')")[-1:] in (".", "!", "?") and not sentence.endswith("...")
            and sum(map(bool, map(_WORD.fullmatch, words))) >= 0.85 * len(words)
            and len(_COMMON.intersection(sentence.lower().split())) >= 1 + (len(words) > 12)
            and sum(word.isupper() and len(word) > 1 for word in words) <= 0.3 * len(words))

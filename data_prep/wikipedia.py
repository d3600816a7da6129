"""The articles of a Wikipedia dump (MediaWiki's export XML) as plain text: passages without lists,
tables, headings and references, as arXiv:1810.04805, section 3.1, takes them.

mwparserfromhell reads the markup; this module decides which of its parts are text.
"""

import contextlib
import html
import re
import unicodedata
import xml.etree.ElementTree
from collections.abc import Collection, Iterator
from typing import NamedTuple

from bert_tf.errors import from_extra
from data_prep import wikipedia_templates

PAGE, PAGE_END = b"<page>", b"</page>"
# Links into these show no text, in dumps of any language; a dump has their names in its language.
_HIDDEN = {"file", "image", "media", "category"}
_HIDDEN_NUMBERS = {"-2", "6", "14"}     # the same in `namespaces` of a dump
# A link into Wikipedia in another language, [[fr:Titre]].
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}(?:-[a-z-]+)?|simple):")
# Elements that are not shown as text, or are shown next to the text.
_DROPPED = {"ref", "references", "gallery", "table", "math", "chem", "ce", "score", "timeline",
            "pre", "source", "syntaxhighlight", "imagemap", "hiero", "style", "script", "graph",
            "mapframe", "maplink", "templatestyles", "templatedata", "indicator", "inputbox", "th",
            "td", "tr", "hr", "ol", "ul", "dl", "includeonly", "categorytree"}
_BREAKS = {"p", "div", "blockquote", "center", "br", "poem"}
_INLINE_CODE = {"source", "syntaxhighlight"}
_CODE = {"code", "tt", "kbd", "samp"}
# Signs of markup in text that shows them; they return when the markup is gone.
_SIGNS = "'[]{}|<>_-*#"
_PROTECT = str.maketrans({sign: chr(0xE000 + number) for number, sign in enumerate(_SIGNS)})
_PROTECT_CODE = {sign: new for sign, new in _PROTECT.items() if sign != ord("'")}
_RESTORE = str.maketrans({chr(0xE000 + number): sign for number, sign in enumerate(_SIGNS)})
_GAP = "\1"         # where something is left out
_NOTHING = "\2"     # where a node begins or ends, so that apostrophes on its sides stay apart
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\u0e00-\u0eff"  # no blanks
_TOUCHING = re.compile(
    rf"(?<=[^\W{_WIDE}]){_GAP}+(?=[^\W{_WIDE}])|(?<=[.,;:!?)\]%°”’»]){_GAP}+(?=[^\W\d{_WIDE}])"
    rf"|(?<=[^\W{_WIDE}]){_GAP}+(?=[(\[“«„])")
# -{zh-hans:...; zh-hant:...}-, a text in two scripts; of braces it has those of templates alone.
_VARIANTS = re.compile(r"-\{(?!\{)((?:[^{}]|\{\{[^{}]*\}\})*)\}-")
_VARIANT = re.compile(r"(?:^|;)\s*(?:[^;:{}]*=>\s*)?([a-z]{2,3}(?:-[a-z]+)?)\s*:")
_FIRST_VARIANTS = ("zh-hans", "zh-cn", "zh", "zh-hant", "zh-tw")
_ITEM = "\0"        # where an item of a list begins
_ITEMS = re.compile(rf"^[^\n]*{_ITEM}[^\n]*$|^[ \t\1\2]*\|[^\n]*$", re.M)      # and rows of tables
# A label at the end of a passage, whose list or table is left out.
_LABEL = re.compile(r"(?:^|(?<=[.!?]) )(?:[^\s.!?]+ ){0,3}[^\s.!?]+:$")
_SIMPLE_FORMULA = re.compile(r"[^\\{}_^<>\n]{1,30}")
_SWITCH = re.compile(r"__(?:(?![a-z])[^\W\d_])+(?:_(?:(?![a-z])[^\W\d_])+)*__")      # __NOTOC__
_STYLE = re.compile(r"('{2,})")
_POSSESSIVE = re.compile(rf"{_NOTHING}*[^\W\d_]{{1,2}}\b")      # the s of ''Titanic'''s
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>")
_CLOSING = re.compile(r"\]\]|\}\}|\|\}|(?<!\w)\|-+(?!\w)")
# Markup that does not end: the parser does not take it for markup, so its text can't be told apart.
_OPEN = re.compile(r"\[\[|\{\{|\{\||</?\s*(?:ref|math|nowiki|table|div|span)\b|<!--")
_EMPTY = [(re.compile(pattern), new) for pattern, new in (
    (r"([(（])(?:\s*[,;:/–-])+\s*", r"\1"), (r"(?:\s*[,;:]|\s)+([)）])", r"\1"),
    (rf"[ \t]*[(（]\s*[)）](?=[^\W{_WIDE}])", " "), (r"[ \t]*[(（]\s*[)）]", ""),
    (r"[ \t]+([,;.!?])(?=\s|$)", r"\1"), (r"[ \t]{2,}", " "))]
_NAMESPACE = re.compile(r'<namespace key="(-?\d+)"[^>]*>([^<]+)</namespace>')
_LANGUAGE_OF_DUMP = re.compile(rb'<mediawiki\b[^>]*\bxml:lang="([a-z]+)')
_REDIRECT = re.compile(r"\s*#[^\W\d_]+\s*:?\s*\[\[", re.I)


def read_namespaces(head: bytes) -> dict[str, set[str]]:
    """Returns names of a dump's namespaces in lower case, from its beginning: `others`, of all but
    articles', and `hidden`, of those whose links show no text."""
    names: dict[str, set[str]] = {"others": set(), "hidden": set(_HIDDEN)}
    for key, name in _NAMESPACE.findall(head.decode("utf-8", "replace")):
        name = html.unescape(name).lower()
        names["others"].add(name)
        if key in _HIDDEN_NUMBERS:
            names["hidden"].add(name)
    return names


def read_language(head: bytes) -> str:
    """Returns the language that the beginning of a dump names, such as de; "" if it names none."""
    return b"".join(_LANGUAGE_OF_DUMP.findall(head)[:1]).decode()


def articles(pages: bytes, namespaces: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yields (title, markup) of each article, no redirect and no other page, in a part of a dump
    that holds whole pages; ParseError of ElementTree if that is not whole XML."""
    first = pages.find(PAGE)
    if first < 0:
        return
    end = pages.rfind(PAGE_END) + len(PAGE_END)
    for page in xml.etree.ElementTree.fromstring(b"<a>%b</a>" % pages[first:end]):
        title, space = page.findtext("title", ""), page.findtext("ns", "").strip()
        markup = page.findtext("revision/text", "")
        is_article = space == "0"
        if not space:
            name, colon, _ = title.partition(":")
            is_article = not colon or name.lower() not in namespaces["others"]
        if is_article and page.find("redirect") is None and not _REDIRECT.match(markup):
            yield title, markup


def plain_text(markup: str, hidden: Collection[str] = frozenset(_HIDDEN),
               language: str = "") -> str:
    """Returns the passages of an article, with blank lines between them.

    The text of links is kept. Headings, lists, tables, templates, pictures, references and formulas
    are left out, as is a passage with markup that does not end. Templates that stand for a
    character, or show their arguments, are replaced; of several variants of Chinese the simplified
    one is taken.

    Args:
        hidden: names, in lower case, of namespaces whose links show no text.
        language: the dump's language, for the form of numbers.
    """
    mwparserfromhell = from_extra("mwparserfromhell", "corpora", "reading Wikipedia's markup")
    try:
        parsed = mwparserfromhell.parse(_VARIANTS.sub(_one_variant, markup), skip_style_tags=True)
    except mwparserfromhell.parser.ParserError:
        return ""       # of deep nesting, on no page that people read
    parts: list[str] = []
    _collect(parsed.nodes, _Page(hidden, language), parts)
    text = _ITEMS.sub("", "".join(parts))
    passages = (_clean(passage) for passage in re.split(rf"\n[ \t{_GAP}{_NOTHING}]*\n+", text))
    return "\n\n".join(filter(None, passages))


class _Page(NamedTuple):
    """What a page's nodes are read with: see `plain_text`."""

    hidden: Collection[str]
    language: str
    protect: dict[int, str] = {}        # signs of markup that text shows


def _one_variant(match):
    flags, bar, text = match[1].rpartition("|")
    flags = {flag.strip() for flag in flags.split(";")}
    if bar and flags & {"H", "T", "-"}:     # a rule, or the title
        return ""
    starts = list(_VARIANT.finditer(text))
    if "R" in flags or not starts or text[:starts[0].start()].strip():
        return text
    ends = [*(start.start() for start in starts[1:]), len(text)]
    variants = {start[1]: text[start.end():end].strip().removesuffix(";")
                for start, end in zip(starts, ends)}
    return next(variants[name] for name in (*_FIRST_VARIANTS, *variants) if name in variants)


def _collect(nodes, page, parts):
    from mwparserfromhell import nodes as kinds
    for node in nodes:
        if isinstance(node, kinds.Text):
            parts.append(node.value.translate(page.protect))
            continue
        parts.append(_NOTHING)
        if isinstance(node, kinds.Wikilink):
            _collect_link(node, page, parts)
        elif isinstance(node, kinds.HTMLEntity):
            with contextlib.suppress(ValueError, OverflowError):    # there is no such character
                parts.append(node.normalize().translate(_PROTECT))
        elif isinstance(node, kinds.ExternalLink):
            if node.title is not None:
                _collect(node.title.nodes, page, parts)
            elif not node.brackets:
                parts.append(str(node.url).translate(_PROTECT))
        elif isinstance(node, kinds.Heading):
            parts.append("\n\n")
        elif isinstance(node, kinds.Template):
            pieces = wikipedia_templates.shown(node, page.language)
            if pieces is None:
                pieces = [_GAP]
            for piece in pieces:
                if isinstance(piece, str):
                    parts.append(piece.translate(_PROTECT))
                else:
                    _collect(piece.nodes, page, parts)
        elif isinstance(node, kinds.Tag):
            _collect_tag(node, page, parts)
        parts.append(_NOTHING)


def _collect_link(node, page, parts):
    title = html.unescape(str(node.title))
    space = title.partition(":")
    if space[1] and space[0].strip().lower() in page.hidden or _LANGUAGE.match(title.strip()):
        parts.append(_GAP)
    elif node.text is not None:
        _collect(node.text.nodes, page, parts)
    else:
        name, _, section = title.partition("#")
        parts.append(name.replace(":", "", 1) if name.lstrip().startswith(":") else name or section)


def _collect_tag(node, page, parts):
    name = str(node.tag).strip().lower()
    contents = getattr(node.contents, "nodes", [])
    if node.wiki_markup and node.wiki_markup[0] in "*#:;":
        parts.append(_ITEM)
    elif name == "nowiki" or name in _INLINE_CODE and node.has("inline"):
        _collect(contents, page._replace(protect=_PROTECT), parts)
    elif name in _CODE:
        _collect(contents, page._replace(protect=_PROTECT_CODE), parts)
    elif name in _BREAKS:
        parts.append(" " if name == "br" else "\n\n")
        if contents and name != "br":
            _collect(contents, page, parts)
            parts.append("\n\n")
    elif name == "math" and _SIMPLE_FORMULA.fullmatch(str(node.contents or "")):
        parts.append(str(node.contents).strip())
    elif name in _DROPPED:
        parts.append(_GAP)
    else:
        _collect(contents, page, parts)


def _clean(passage):
    """Returns a passage on one line, without the remains of markup; "" if it has markup that does
    not end, or no letters."""
    if _OPEN.search(passage):
        return ""
    text = "\n".join(map(_without_style, _TAGS.sub(_NOTHING, passage).split("\n")))
    text = _CLOSING.sub("", _SWITCH.sub("", text.replace(_NOTHING, "")))
    text = " ".join(html.unescape(_TOUCHING.sub(" ", text).replace(_GAP, "")).split())
    for pattern, new in _EMPTY:
        text = pattern.sub(new, text)
    text = _LABEL.sub("", text.strip()).translate(_RESTORE)
    return text if any(unicodedata.category(char)[0] == "L" for char in text) else ""


def _without_style(line):
    """Returns a line without the apostrophes of bold and italics, of which mwparserfromhell's own
    reading leaves some in the text, as of L'''amour'' and ''Ada'''s.

    As in MediaWiki, four are one and bold, and over five are the rest and both; if neither kind has
    its end, one apostrophe of a bold mark is text. MediaWiki looks for one in a line; here each
    mark of three after a letter is an apostrophe and italics, if these end as in l'''amour'' or
    began as in ''Titanic'''s.
    """
    parts = _STYLE.split(line)
    marks = range(1, len(parts), 2)
    for at in marks:
        count = len(parts[at])
        marked = min(3 if count == 4 else count, 5)
        parts[at - 1] += "'" * (count - marked)
        parts[at] = marked
    is_bold = is_italic = False
    for at in marks:
        following = [parts[other] for other in (at + 2, at + 4, at + 6) if other < len(parts)]
        begins = not is_bold and not is_italic and following[:1] == [2] and following != [2, 2, 3]
        is_ended = is_italic and _POSSESSIVE.match(parts[at + 1])
        if parts[at] == 3 and (begins or is_ended) and (
                parts[at - 1].rstrip(_NOTHING)[-1:].isalpha()):
            parts[at - 1] += "'"
            parts[at] = 2
        is_italic ^= parts[at] in (2, 5)
        is_bold ^= parts[at] in (3, 5)
    bold = [at for at in marks if parts[at] in (3, 5)]
    italic = [at for at in marks if parts[at] in (2, 5)]
    if len(bold) % 2 and len(italic) % 2:
        at = _apostrophe([at for at in bold if parts[at] == 3], parts)
        if at:
            parts[at - 1] += "'"
    return "".join(parts[::2])


def _apostrophe(bold, parts):
    """The bold mark that begins with an apostrophe of the text: the first after a word of a letter,
    else after a longer word, else after a blank; None if there is no bold mark."""
    def rank(at):
        before = parts[at - 1]
        if before.endswith(" "):
            return 2
        return int(before[-2:-1] != " ")
    return min(bold, key=rank, default=None)

"""The articles of a Wikipedia dump as plain text: passages without lists, tables, headings and
references, as arXiv:1810.04805, section 3.1, takes them.

mwparserfromhell reads the markup and finds links and templates; this module decides which of their
parts are text. The form of dumps is MediaWiki's export XML (mediawiki.org/wiki/Help:Export).
"""

import html
import re
import unicodedata
import xml.etree.ElementTree
from collections.abc import Collection, Iterator

from bert_tf.errors import InputError

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
# Templates that show some of their arguments as they are, in the words of English and some others.
_SHOWN: dict[str, tuple[str, ...]] = {
    "lang": ("2",), "langue": ("2",), "transl": ("2",), "transliteration": ("2",), "nowrap": ("1",),
    "nobr": ("1",), "nobold": ("1",), "small": ("1",), "abbr": ("1",), "convert": ("1", "2"),
    "cvt": ("1", "2"), "val": ("1",), "as of": ("1",), "'": (), "ndash": (), "mdash": ()}
_ITEM = "\0"        # where an item of a list begins
_ITEMS = re.compile(rf"^[^\n]*{_ITEM}[^\n]*$|^[ \t]*\|[^\n]*$", re.M)      # and rows of tables
# A label at the end of a passage, whose list or table is left out.
_LABEL = re.compile(r"(?:^|(?<=[.!?]) )(?:[^\s.!?]+ ){0,3}[^\s.!?]+:$")
_SIMPLE_FORMULA = re.compile(r"[^\\{}_^<>\n]{1,30}")
_SWITCH = re.compile(r"__[^\W\d_]+__")      # __NOTOC__
_STYLE = re.compile(r"'{2,5}")
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>")
_CLOSING = re.compile(r"\]\]|\}\}|\|\}|(?<!\w)\|-+(?!\w)")
# Markup that does not end: the parser does not take it for markup, so its text can't be told apart.
_OPEN = re.compile(r"\[\[|\{\{|\{\||</?\s*(?:ref|math|nowiki|table|div|span)\b|<!--")
_EMPTY = [(re.compile(pattern), new) for pattern, new in (
    (r"([(（])(?:\s*[,;:/–-])+\s*", r"\1"), (r"(?:\s*[,;:]|\s)+([)）])", r"\1"),
    (r"[ \t]*[(（]\s*[)）]", ""), (r"[ \t]+([,;.!?])(?=\s|$)", r"\1"), (r"[ \t]{2,}", " "))]
_NAMESPACE = re.compile(r'<namespace key="(-?\d+)"[^>]*>([^<]+)</namespace>')
_LANGUAGE_OF_DUMP = re.compile(rb'<mediawiki\b[^>]*\bxml:lang="([a-z]+)')
_REDIRECT = re.compile(r"\s*#[^\W\d_]+\s*:?\s*\[\[", re.I)


def read_namespaces(head: bytes) -> dict[str, set[str]]:
    """Returns names of a dump's namespaces in lower case, from its beginning: `others`, of all but
    articles', and `hidden`, of those whose links show no text."""
    found: dict[str, set[str]] = {"others": set(), "hidden": set(_HIDDEN)}
    for key, name in _NAMESPACE.findall(head.decode("utf-8", "replace")):
        name = html.unescape(name).lower()
        found["others"].add(name)
        if key in _HIDDEN_NUMBERS:
            found["hidden"].add(name)
    return found


def read_language(head: bytes) -> str:
    """Returns the language that the beginning of a dump names, such as de; "" if it names none."""
    named = _LANGUAGE_OF_DUMP.search(head)
    return named[1].decode() if named else ""


def articles(pages: bytes, namespaces: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    """Yields (title, markup) of each article in a part of a dump that holds whole pages.

    Redirects and pages that are no articles are left out.

    Raises:
        xml.etree.ElementTree.ParseError: this is not whole XML.
    """
    first = pages.find(PAGE)
    if first < 0:
        return
    end = pages.rfind(PAGE_END) + len(PAGE_END)
    for page in xml.etree.ElementTree.fromstring(b"<a>%b</a>" % pages[first:end]):
        title, space = page.findtext("title", ""), page.findtext("ns", "").strip()
        markup = page.findtext("revision/text", "")
        is_article = space == "0" if space else (
            ":" not in title or title.partition(":")[0].lower() not in namespaces["others"])
        if is_article and page.find("redirect") is None and not _REDIRECT.match(markup):
            yield title, markup


def plain_text(markup: str, hidden: Collection[str] = frozenset(_HIDDEN)) -> str:
    """Returns the passages of an article, with blank lines between them.

    The text of links is kept, and headings, lists, tables, templates, pictures, references and
    formulas are left out, as is a passage with markup that does not end.

    Args:
        hidden: names, in lower case, of namespaces whose links show no text.
    """
    try:
        import mwparserfromhell  # an extra
    except ImportError as error:
        raise InputError("reading Wikipedia's markup needs a package that is not installed; pip "
                         "install 'bert_tf[corpora]'.") from error
    try:
        parsed = mwparserfromhell.parse(markup, skip_style_tags=True)
    except mwparserfromhell.parser.ParserError:
        return ""       # of deep nesting, on no page that people read
    parts: list[str] = []
    _collect(parsed.nodes, hidden, parts)
    text = _ITEMS.sub("", "".join(parts))
    passages = (_clean(passage) for passage in re.split(r"\n[ \t]*\n+", text))
    return "\n\n".join(filter(None, passages))


def _collect(nodes, hidden, parts):
    """Appends the text of nodes of mwparserfromhell's tree."""
    from mwparserfromhell import nodes as kinds
    for node in nodes:
        if isinstance(node, kinds.Text):
            parts.append(node.value)
        elif isinstance(node, kinds.Wikilink):
            _collect_link(node, hidden, parts)
        elif isinstance(node, kinds.HTMLEntity):
            parts.append(_character(node))
        elif isinstance(node, kinds.ExternalLink):
            if node.title is not None:
                _collect(node.title.nodes, hidden, parts)
            elif not node.brackets:
                parts.append(str(node.url))
        elif isinstance(node, kinds.Heading):
            parts.append("\n\n")
        elif isinstance(node, kinds.Template):
            for number in _SHOWN.get(str(node.name).strip().lower(), ()):
                if node.has(number):
                    _collect(node.get(number).value.nodes, hidden, parts)
                    parts.append(" ")
            if parts and parts[-1] == " ":
                parts.pop()
        elif isinstance(node, kinds.Tag):
            _collect_tag(node, hidden, parts)


def _collect_link(node, hidden, parts):
    title = str(node.title).strip()
    space = title.partition(":")
    if space[1] and space[0].strip().lower() in hidden or _LANGUAGE.match(title):
        return
    if node.text is None:
        parts.append(title.removeprefix(":").partition("#")[0] or title.removeprefix("#"))
    else:
        _collect(node.text.nodes, hidden, parts)


def _collect_tag(node, hidden, parts):
    name = str(node.tag).strip().lower()
    if node.wiki_markup and node.wiki_markup[0] in "*#:;":
        parts.append(_ITEM)
    elif name in _BREAKS:
        parts.append(" " if name == "br" else "\n\n")
        if node.contents is not None and name != "br":
            _collect(node.contents.nodes, hidden, parts)
            parts.append("\n\n")
    elif name == "math" and _SIMPLE_FORMULA.fullmatch(str(node.contents or "")):
        parts.append(str(node.contents).strip())
    elif name not in _DROPPED and node.contents is not None:
        _collect(node.contents.nodes, hidden, parts)


def _character(node):
    try:
        return node.normalize()
    except (ValueError, OverflowError):     # there is no such character
        return ""


def _clean(passage):
    """Returns a passage on one line, without the remains of markup; "" if it has markup that does
    not end, or no letters."""
    if _OPEN.search(passage):
        return ""
    text = _CLOSING.sub("", _SWITCH.sub("", _STYLE.sub("", _TAGS.sub("", passage))))
    text = " ".join(html.unescape(text).split())
    for pattern, new in _EMPTY:
        text = pattern.sub(new, text)
    text = _LABEL.sub("", text.strip())
    return text if any(unicodedata.category(char)[0] == "L" for char in text) else ""

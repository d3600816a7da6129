"""Templates of Wikipedia that stand for a character or show their arguments: what they show.

The rows are of the templates that English, French, German, Spanish, Italian, Russian, Chinese and
Japanese pages use within sentences, as their pages in the namespace Template describe them. All
other templates are left out.
"""

import re

# What a template shows; {2} is its second argument, {u} the one of that name.
_SHOWN = {
    **dict.fromkeys(("ndash", "–", "en dash", "nsndns", "dash"), "–"),
    **dict.fromkeys(("mdash", "—", "em dash"), "—"),
    **dict.fromkeys(("snd", "spnd", "sndash", "spndash", "spaced ndash", "spaced en dash", "snds"),
                    " – "),
    **dict.fromkeys(("smd", "spaced mdash", "spaced em dash"), " — "),
    **dict.fromkeys(("nbsp", "spaces", "space", "spc", "thinsp", "thin space", "hairsp", "ensp",
                     "emsp", "br", "break", "crlf", "clear", "-"), " "),
    **dict.fromkeys(("zwsp", "shy", "zwj", "zwnj", "wbr"), ""),
    **dict.fromkeys(("·", "dot", "middot", "•", "bull", "bullet"), " · "),
    **dict.fromkeys(("x", "×", "times"), "×"),
    "'": "'", "`": "‘", "'s": "'s", "' \"": "' \"", "\" '": "\" '", "!": "|", "=": "=",
    "...": "...", "ellipsis": "...", "nbhyph": "-", "hyphen": "-", "minus": "\N{MINUS SIGN}",
    "±": "±", "plusminus": "±", "prime": "{1}′", "pprime": "{1}″", "deg": "°", "degree": "°",
    "pi": "π", "euro": "€{1}", "€": "€{1}", "£": "£{1}", "gbp": "£{1}", "us$": "US${1}",
    "usd": "US${1}", "¥": "¥{1}", "sic": "{1} [sic]", "n°": "n° ", "numéro": "n° {1}",
    **dict.fromkeys((
        "nowrap", "nobr", "nobold", "noitalic", "small", "smaller", "big", "larger", "abbr",
        "tooltip", "sub", "sup", "e", "exp", "exposant", "ind", "indice", "mvar", "math", "var",
        "code", "kbd", "samp", "mono", "strong", "em", "bold", "italic", "chem2", "ill", "flag",
        "flagcountry", "flagu", "smallcaps", "sc", "sm", "citation", "nombre", "número", "esd",
        "s-", "link-en", "link-ja", "le", "仮リンク", "ruby", "ルビ", "нп", "нп5", "число", "comma",
        "keypress", "notatypo", "linktext", "underline", "u", "uline", "cquote", "quote",
        "blockquote", "zitat", "interlanguage link", "petites capitales", "не переведено"), "{1}"),
    **dict.fromkeys(("lang", "langue", "transl", "transliteration", "script", "color", "colour",
                     "font color", "farbe"), "{2}"),
    "tsl": "{3}", "unité": "{1} {2}", "unidad": "{1} {2}", "circa": "c. {1}", "c.": "c. {1}",
    "ca": "c. {1}", "date-": "{1} {2} {3}", "date": "{1} {2} {3}", "hms": "HMS {1}",
    "uss": "USS {1}", "ship": "{1} {2}", "1er": "1er", "1re": "1re", "av jc": "av. J.-C.",
    "s": "{1}e siècle", "siècle": "{1}e siècle", "nihongo": "{1} ({2})", "読み仮名": "{1}（{2}）",
    "\"": "„{1}“"}
_OF_A_LANGUAGE = re.compile(r"lang-[a-z-]+|[a-z]{2}S")      # {{lang-la|luna}}
_MONTHS = ("January February March April May June July August September October November "
           "December").split()
# Words between the numbers of {{convert}}.
_RANGES = {"-": "–", "–": "–", "to": " to ", "to(-)": " to ", "and": " and ", "and(-)": " and ",
           "or": " or ", "by": " by ", "x": " × ", "xx": " × ", "*": " × ", "×": " × ",
           "+/-": " ± ", "±": " ± ", "to about": " to about ", "-to-": "-to-", ",": ", "}
_UNITS = {"C": "°C", "F": "°F", "sqmi": "sq mi", "sqft": "sq ft", "cuft": "cu ft", "ftin": "ft"}
_WHOLE = re.compile(r"\d{4,}(?=\.|$)")
_NUMBER = re.compile(r"[-−+]?[\d,.]*\d[\d,./+]*(?:e-?\d+)?")
# How languages group digits; the others do as English.
_SEPARATORS = {**dict.fromkeys(("de", "es", "it", "nl", "pt"), "."),
               **dict.fromkeys(("fr", "pl", "ru", "sv", "uk"), " ")}


def shown(template, language):
    """Returns what a template shows, as a list of texts and of mwparserfromhell's `Wikicode`; None
    if that is not known. `language`, the dump's, is for the numbers of formatnum; "" is English."""
    name = " ".join(str(template.name).replace("_", " ").split())
    function, colon, text = name.partition(":")
    function = function.strip().lower()
    if colon and function in ("lc", "lcfirst", "uc", "ucfirst"):
        return [getattr(text, {"lc": "lower", "uc": "upper"}.get(function, "strip"))()]
    if colon and function == "formatnum":
        return [text if template.has("2") or template.has("1") else group_digits(text, language)]
    if not _OF_A_LANGUAGE.fullmatch(name):
        name = name.lower()
    texts = [str(param.value).strip() for param in template.params if not param.showkey]
    if name in _COMPUTED:
        named = {str(param.name).strip(): str(param.value).strip()
                 for param in template.params if param.showkey}
        return [_COMPUTED[name](texts, named)]
    pattern = "{1}" if _OF_A_LANGUAGE.fullmatch(name) else _SHOWN.get(name)
    if pattern is None:
        return None
    parts = re.split(r"\{(\w+)\}", pattern)
    for number in range(1, len(parts), 2):
        parts[number] = template.get(parts[number]).value if template.has(parts[number]) else ""
    return parts


def group_digits(number, language):
    return _WHOLE.sub(lambda digits: f"{int(digits[0]):,}".replace(
        ",", _SEPARATORS.get(language, ",")), number.strip(), count=1)


def _convert(texts, named):
    """{{convert|10|to|20|km|mi}}: 10 to 20 km."""
    parts, place = [], 0
    while place < len(texts) and _NUMBER.fullmatch(texts[place]):
        parts.append(group_digits(texts[place], ""))
        following = next(iter(texts[place + 1:]), "")
        if following in _RANGES:
            parts.append(_RANGES[following])
        else:
            parts.append(f" {_UNITS.get(following, following)} ")
            # Feet and inches; a single number is the precision.
            if place + 3 >= len(texts) or following in ("C", "F"):
                break
        place += 2
    return "".join(parts).strip()


def _as_of(texts, named):
    """{{as of|2009|3|8}}: As of 8 March 2009."""
    if named.get("alt"):
        return named["alt"]
    begin = "Since" if named.get("since") else "As of"
    if named.get("lc"):
        begin = begin.lower()
    parts = texts[:3]
    if len(parts) > 1 and parts[1].isdigit() and 1 <= int(parts[1]) <= 12:
        parts[1] = _MONTHS[int(parts[1]) - 1]
    return " ".join([begin, *reversed(parts)])


def _value(texts, named):
    """{{val|1.5|0.1|u=km}}: 1.5±0.1 km."""
    number = "±".join(texts[:2]) + (f"×10{named['e']}" if named.get("e") else "")
    unit = named.get("u") or named.get("ul") or ""
    return f"{number} {unit}".strip()


def _fraction(texts, named):
    """{{frac|1|2}}: 1/2; {{frac|3|1|2}}: 3 1/2."""
    if len(texts) == 1:
        return f"1/{texts[0]}"
    return " ".join([*texts[:-2], "/".join(texts[-2:])])


_COMPUTED = {"convert": _convert, "cvt": _convert, "as of": _as_of, "asof": _as_of, "val": _value,
             "frac": _fraction, "fraction": _fraction, "sfrac": _fraction,
             **dict.fromkeys(("chem", "gaps"), lambda texts, named: "".join(texts))}    # H2O

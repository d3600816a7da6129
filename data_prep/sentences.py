"""Sentences out of a paragraph, by rules: where a stop ends one, and where it does not. What
depends on a script holds for every text; what depends on a language is a row of `LANGUAGES`."""

import dataclasses
import functools
import re

ENGLISH = "en"
# Stops that no abbreviation has: of Devanagari, Arabic, Urdu, Armenian, Amharic, Burmese, Khmer.
CLEAR_STOPS = "।॥؟۔։።။។"
_WIDE_STOPS = "。！？"
_WIDE_LETTERS = "\u3041-\u30ff\u4e00-\u9fff"
_WIDE_CLOSING = "\"'”’」』）】》〉"
_WIDE = re.compile(f"[{_WIDE_STOPS}]")
_QUOTES = "\"'`“”‘’„‚«»‹›"
# A quotation mark of French stands apart from its words.
_CLOSING = rf"(?:[{_QUOTES})\]]| [»›])*"
_OPENING = rf"(?:(?:[{_QUOTES}(\[¿¡]|,,) ?|(?:[—–]|--?) )*"
_BOUNDARY = re.compile(
    rf"(?<=[.!?…])(?P<closing>{_CLOSING})\s+(?={_OPENING}(?P<letter>[^\Wa-z_]))"
    rf"|(?<=[{_WIDE_STOPS}])(?P<wide>[{_WIDE_CLOSING}]*)(?![{_WIDE_STOPS}{_WIDE_CLOSING}])\s*"
    rf"|(?<=[{_WIDE_LETTERS}][!?])(?P<half>)(?=[{_WIDE_LETTERS}])"
    rf"|(?<=[{CLEAR_STOPS}])(?P<clear>{_CLOSING})\s+")
# What stands before a word: nothing, a blank, an opening mark, the stop of an initial, a hyphen.
_BEGIN = rf"(?<![^\s(\[.{_QUOTES}–—-])"
_INITIAL = re.compile(rf"{_BEGIN}[^\W\d_]\.$")
_ORDINAL = re.compile(rf"{_BEGIN}(?:\d{{1,3}}|[IVXLC]+)\.$")
_NUMBER = re.compile(r"[(\[]?(?:\d|[IVXLC]+\b)")
_NEXT_WORD = re.compile(rf"{_OPENING}([^\W\d_]{{1,30}})(?=[\s,’'])")
# The names of Latin letters, titles and "CE" in Hindi.
_HINDI = ("ए बी सी डी ई एफ जी एच आई जे के एल एम एन ओ पी क्यू आर एस टी यू वी डब्ल्यू एक्स "
          "वाई जेड ज़ेड डॉ डा श्री श्रीमती प्रो पं कु ई स्व रु मो")
# Marks that enclose text in Chinese and Japanese; no cut within them, unless they enclose much.
_PAIRS = {"（": "）", "「": "」", "『": "』", "【": "】", "《": "》", "〈": "〉", "“": "”"}
_MARKS = re.compile(f"[{''.join(_PAIRS)}{''.join(_PAIRS.values())}]")
_WIDE_BRACKETS = "）】》〉"
_MOST_ENCLOSED = 200
# How a sentence goes on after a stop: Japanese particles; and who speaks, after a quotation.
_PARTICLE = re.compile(
    r"と(?!ころ|にかく|ても|もに|もあれ|りあえず)|って|っ|など|を|の(?!ん|ち|び|ど|り)|が(?!ん|っ)|"
    r"に(?!ほん|ぎ|わ|く)|は(?!い|じ|や|る|な)|も(?!う|し|っ|ち|の)|で(?!も|は|き|す)|です|だ(?!か|が|け|っ|れ)|"
    r"か(?:ら|、|どうか)|まで|より")
_BARE_PARTICLE = re.compile(r"[とを](?!ころ|にかく|ても|もに|もあれ|りあえず)|の(?!ん|ち|び|ど|り)")
_SPEAKER = re.compile(
    r"[^。！？，：“”「」]{0,10}(?:说|說|(?<!知)道|问|問|回答|喊|叫|想)[道着著了]?[。，：]|"
    r"\S{1,20}(?: \S{1,20}){0,2} (?:पूछा|कहा|बोल[ाीे]|चिल्लाया|चिल्लाई|सोचा)|"
    r"(?:I|[HS]e|We|They|The \w{1,20}|[A-Z][\w.’'-]{1,20}(?: [A-Z][\w.’'-]{1,20})?) (?:said|asked|"
    r"cried|replied|shouted|exclaimed|answered|whispered|called|thought|wondered|demanded|added|"
    r"muttered)\b(?! no| noth)")


@dataclasses.dataclass(frozen=True)
class Rules:
    """What a stop means in a language. Each list of words is a text with blanks between them. The
    words lack their last stop; `_` is a blank within one, `*` any letters. A word in small letters
    may begin with a capital one."""

    inner: str = ""     # words that end no sentence
    names: str = ""     # words that end one only before a word of `starters`, as initials do
    numbered: str = ""  # words that end no sentence before a number
    starters: str = ""  # words that begin sentences and are in no name
    final: str = ""     # words that end one before a capital though they look like initials
    ordinals: bool = False  # a stop makes a number an ordinal; it ends a sentence as `names` do


_EN = Rules(
    inner=("e.g e._g i.e i._e cf approx resp w.r.t a.k.a vs viz Mr Mrs Ms Messrs Dr Drs Prof Rev "
           "Hon Gen Col Maj Capt Lt Sgt Cpl Cmdr Adm Gov Sen Rep Pres St Mt Ft Fr Supt Esq"),
    names="Jr Sr Inc Ltd Co Corp Bros al Ave Blvd Rd Dept Univ Assn",
    numbered=("fig figs eq eqs sec secs ch chap no nos nr vol vols p pp art ref refs par para tab "
              "v c ca Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"),
    starters=("The This That These Those There It Its He She They We I You His Her Their Our My "
              "Your A An In On At As But And Or So If When While After Before During Since For "
              "From By To With Of Then Thus Also Although However What Why How Who Where Which "
              "Many Most Some Several Both All Each Such Not No Another Later Today Now Here Is "
              "Was Are Were Do Does Did Can Could Would Will According Because Despite Once Until "
              "Under Unlike See Let Note Please"))
# The rows of languages; all have what their texts take from English, such as Dr and Jr.
LANGUAGES: dict[str, Rules] = {
    ENGLISH: _EN,
    "de": Rules(
        inner=("z._B d._h u._a u._U u._ä o._ä s._o s._u i._d._R i._A i._V v._a z._T m._E o._g "
               "u._g bzw vgl ca evtl ggf gegr geb gest inkl exkl sog bes insb eigtl urspr ehem Fr "
               "Hr Hrn Hrsg hrsg Prof Dr Dipl Ing Str Mag Hl hl St Frhr Tel tel Fa lat griech "
               "engl frz dt österr zw zzgl abzgl max min mind einschl verh Univ phil rer nat med "
               "jur theol"),
        names="Jan Feb Apr Aug Sept Okt Nov Dez jun sen Mio Mrd Tsd Th Ph Jh Jhd Jhdt Chr Abt",
        numbered=("S Nr Abs Art Abb Tab Kap Ziff Zl Anm § Rn Aufl *str Mär Jan Feb Apr Aug Sept "
                  "Okt Nov Dez Bd Bde"),
        starters=("Der Die Das Den Dem Des Ein Eine Einer Einen Einem Er Sie Es Wir Ich Ihr Du "
                  "Man In Im Am An Auf Aus Bei Beim Mit Nach Seit Von Vom Vor Zu Zum Zur Für "
                  "Durch Gegen Ohne Um Unter Über Während Wenn Als Da Dann Danach Doch Aber Und "
                  "Oder Denn Auch Nur Noch Heute Hier Dort Dabei Damit Dazu Daher Darauf Dieser "
                  "Diese Dieses Diesen Diesem Sein Seine Seinen Seinem Ihre Ihren Ihrem Nicht Wie "
                  "Was Wer Wo Warum So Jedoch Trotzdem Zudem Außerdem Später Allerdings Bis Ab "
                  "Alle Viele Einige Weil Obwohl Nachdem Ist War Waren Sind Hat Hatte Wird Wurde "
                  "Wurden Anschließend Bereits Seitdem Zwischen Ob Mein Meine Unser Kein Keine"),
        ordinals=True),
    "fr": Rules(
        inner=("p._ex c.-à-d c._-à-d cf M MM Mme Mmes Mlle Mlles Mgr Me Pr St Ste av bd éd env "
               "apr anc boul Gal Cdt Cne Lt Col ca vs dr prof"),
        names="Cie Jr janv févr avr juil sept oct nov déc hab",
        numbered=("p pp art n no nos vol t chap fig tab coll ch janv févr avr juil sept oct nov "
                  "déc"),
        starters=("Les Il Elle Ils Elles On Ce Cet Cette Ces Je Tu Nous Vous En Dans À Au Aux Sur "
                  "Pour Par Mais Et Ou Où Si Son Sa Ses Leur Leurs Un Une Puis Depuis Après Avant "
                  "Avec Selon Lors Comme Quand Ainsi Cependant Toutefois Sous Entre Sans Vers C L "
                  "D Qu Plus Alors")),
    "es": Rules(
        inner=("Sres Sras Drs Profa lic ing arq gral Cnel Cap Tte Av Avda Ud Uds Vd Vds D Dña Da "
               "Sto Sta Mons Excmo Excma p._ej ej EE aprox Fr Pdte Pdta vs c/ cf dr dra sr sra "
               "srta prof"),
        names="UU S.A Cía Jr hab",
        numbered="pág págs núm núms art arts vol vols cap fig tel n no p pp t nro",
        starters=("El Los Las Un Una En Se Su Sus Es Fue Era Con Por Para Al A Como Cuando Pero Y "
                  "No Este Esta Estos Estas Él Ella Ellos Ellas Desde Después Según Entre Sin "
                  "Durante Tras Luego También Además Lo Le Si Hay Ha Han Más Aunque Así La Ese "
                  "Esa Nació Murió Ya Todo Todos Hoy Véase Allí Son")),
    "it": Rules(
        inner=("sig sigg sig.ra dott dott.ssa prof prof.ssa ing avv arch geom rag mons On "
               "Gen Col Cap p._es es ad cfr S Ss SS St c.d cd ca"),
        names="a.C d.C Jr",
        numbered="pag pagg art artt att n nr vol cap fig tab p pp",
        starters=("Il Lo La I Gli Le L Un Una Uno In Nel Nella Nei Nelle È Era Fu Si Con Per Da "
                  "Dal Dalla Al Alla Ma E Non Questo Questa Questi Queste Egli Lui Lei Loro Dopo "
                  "Prima Quando Come Se Su Sul Sulla Anche Inoltre Tuttavia Secondo Tra Fra "
                  "Durante Nacque Morì Dalle Dai Così Poi Ha Sono")),
    "pt": Rules(
        inner=("sr sra srta srs dr dra drs prof profa Eng Arq Gen Cel Cap Ten Av V._Exa Exmo Exma "
               "p._ex ex aprox S Sto Sta D Pe R"),
        names="S.A Cia Ltda Jr hab",
        numbered="pág págs núm n nº art arts vol cap fig tel p pp",
        starters=("O A Os As Um Uma Em No Na Nos Nas Se Seu Sua Seus Suas É Foi Era Com Por Para "
                  "Ao Aos À Como Quando Mas E Não Este Esta Estes Ele Ela Eles Elas Desde Depois "
                  "Segundo Entre Sem Durante Após Também Além Há Mais Embora Assim Do Da De Já "
                  "Hoje Nasceu Isso")),
    "nl": Rules(
        inner=("bijv o.a d.w.z m.n m.b.t t.o.v i.v.m i.p.v a.u.b dhr mevr mw dr drs ir ing mr "
               "prof ds jhr St Sint ca ong resp evt incl excl vgl cf zgn bv n.a.v o.l.v t.b.v"),
        names="jr sr N.V B.V Chr enz",
        numbered=("blz p pp nr nrs art afb fig hfdst dl jan feb mrt apr jun jul aug sep sept okt "
                  "nov dec"),
        starters=("De Het Een Hij Zij Ze Wij We Ik Je Jij U Er Dit Dat Deze Die In Op Aan Van "
                  "Voor Met Na Naar Bij Om Uit Door Als Toen Maar En Of Ook Zijn Haar Hun Daar "
                  "Hier Daarna Sinds Volgens Tijdens Tussen Onder Over Nu Wat Wie Waar Hoe Is Was "
                  "Niet Vanaf Omdat Later")),
    "sv": Rules(
        inner=("t.ex t._ex bl.a bl._a d.v.s dvs s.k fr.o.m t.o.m p.g.a resp ca jfr st f.d dr prof "
               "kap enl inkl"),
        names="f.Kr e.Kr Jr m.fl",
        numbered="nr s sid kap fig bd jan feb mars apr aug sept okt nov dec kl",
        starters=("Den Det De En Ett Han Hon Vi Jag Du Ni Man I På Av För Med Efter Vid Om Till "
                  "Från Som När Men Och Att Under Sedan Där Här Då Hans Hennes Deras Denna Detta "
                  "Dessa Enligt Genom Mellan Alla Några Nu Även")),
    "pl": Rules(
        inner=("np tj tzw tzn m.in ok ob ww św śp ul al pl os prof dr hab mgr inż ks bp gen płk "
               "mjr kpt red płn płd zob ang niem łac fr ros wł hiszp gr jap min max woj pow gm ds "
               "pn pt wyd"),
        names="n.e p.n.e jr im por",
        numbered="nr s str t tom art ust poz rys tab r",
        starters=("W We Z Ze Na Po Do Od Za Przy Dla To Ten Ta Te Jest Był Była Było Byli Nie I A "
                  "Ale On Ona Oni Jego Jej Ich Jak Gdy Kiedy Jednak Także Również Obecnie "
                  "Następnie Potem O U Pod Przed Przez Są Ma Został Została"),
        ordinals=True),
    "ru": Rules(
        inner=("т._е т._к т._н т._о см ср напр ул пл пер просп пр-т проф акад доц канд чл гр гр-н "
               "тов св о илл англ нем фр франц лат греч итал исп рус др.-греч яп прибл ок др.-рус "
               "лейт пр"),
        names="н._э обл им ген",
        numbered="с стр ст п пп № т тт ч вып рис табл гл д кв корп род ум",
        starters=("Он Она Оно Они В Во На С Со По Из К И Но Не Это Этот Эта Эти Его Её Ее Их За "
                  "При После До Для Как Когда Если Так Также Там Тогда Затем Потом Позже Однако "
                  "Кроме Мы Я Вы Ты Под От Об О У Что Кто Где Все Всё Был Была Было Были Среди "
                  "Через Между Ещё Есть Никто"),
        final="т._п т._д т._ч и_др и_пр"),
    "uk": Rules(
        inner=("т._зв див пор напр вул пл просп проф акад доц канд св о англ нім ісп рос італ фр "
               "лат грец бл"),
        names="н._е обл ім ген",
        numbered="с стор ст п пп № т тт ч вип рис табл гл буд кв",
        starters=("Він Вона Воно Вони У В На З Із Зі По До Від Та І Й Але Не Це Цей Ця Ці Його Її "
                  "Їх За При Після Для Як Коли Якщо Так Також Там Тоді Потім Пізніше Однак Крім "
                  "Ми Я Ви Ти Під Про Що Хто Де Усі Всі Був Була Було Були"),
        final="т._п т._д та_ін і_т._ін"),
    # What their scripts need holds for every text.
    "hi": Rules(), "ja": Rules(), "ko": Rules(), "zh": Rules(),
}


def sentences(paragraph: str, language: str = ENGLISH) -> list[str]:
    """Returns the sentences of a paragraph on one line; joined by blanks, or by nothing in Chinese
    and Japanese, they are the paragraph."""
    enclosed = _enclosed(paragraph) if _WIDE.search(paragraph) else {}
    parts, start = [], 0
    for boundary in _BOUNDARY.finditer(paragraph):
        if _goes_on(paragraph, boundary, enclosed, language):
            continue
        parts.append(paragraph[start:boundary.end()].strip())
        start = boundary.end()
    parts.append(paragraph[start:].strip())
    return [part for part in parts if part]


def _goes_on(paragraph, boundary, enclosed, language):
    place, end = boundary.span()
    if boundary["wide"] is not None:
        return _goes_on_wide(paragraph, boundary, enclosed)
    if boundary["half"] is not None:
        return bool(_BARE_PARTICLE.match(paragraph, end))
    letter = boundary["letter"] or ""
    if letter.islower() and letter.title() != letter:       # Georgian has no other form
        return True
    closing = (boundary["closing"] or boundary["clear"] or "").strip()
    if closing:
        is_quoted = paragraph[place - 1] != "." and closing[-1] in _QUOTES
        return is_quoted and bool(_SPEAKER.match(paragraph, end))
    return paragraph[place - 1] == "." and _is_abbreviation(paragraph, place, end, language)


def _is_abbreviation(paragraph, place, end, language):
    """Whether the stop before `place` belongs to a word, and the sentence goes on at `end`."""
    patterns, starters, ordinals = _compiled(language)
    least = max(place - 20, 0)

    def ends_in(pattern):
        return pattern.search(paragraph, least, place)

    if ends_in(patterns["final"]):
        return False
    if ends_in(patterns["inner"]):
        return True
    if ends_in(patterns["numbered"]) and _NUMBER.match(paragraph, end):
        return True
    if ordinals and paragraph[end].isdigit() and ends_in(_ORDINAL):
        return True
    if ends_in(patterns["names"]) or ends_in(_INITIAL) or ordinals and ends_in(_ORDINAL):
        word = _NEXT_WORD.match(paragraph, end)
        return not (word and word[1] in starters) and not paragraph[end].isdigit()
    return False


@functools.cache
def _compiled(language):
    """Returns ({attribute of `Rules`: pattern}, starters, ordinals) of a language."""
    rules, patterns = LANGUAGES[language], {}
    for name in ("inner", "names", "numbered", "final"):
        words = f"{getattr(rules, name)} {getattr(_EN, name)}".split()
        if name == "inner":
            words += _HINDI.split()
        forms = "|".join(_form(word) for word in dict.fromkeys(words))
        patterns[name] = re.compile(rf"{_BEGIN}(?:{forms or '(?!)'})\.$")
    return patterns, frozenset((rules.starters or _EN.starters).split()), rules.ordinals


def _form(word):
    """The pattern of a word; a blank in it may be absent, and a small letter may be a capital."""
    form = re.escape(word).replace("_", r"\s?").replace(r"\*", r"\w*")
    if word[0].isalpha() and word.islower():
        return f"[{word[0]}{word[0].upper()}]{form[1:]}"
    return form


def _goes_on_wide(paragraph, boundary, enclosed):
    place, end = boundary.span()
    after = place + len(boundary["wide"])
    if enclosed and any(enclosed.get(last, place) < place
                        for last in range(after, place + _MOST_ENCLOSED)):
        return True
    if not boundary["wide"]:
        return bool(_BARE_PARTICLE.match(paragraph, end))
    if boundary["wide"][-1] in _WIDE_BRACKETS and end < len(paragraph):
        return True
    if _PARTICLE.match(paragraph, end):
        return True
    opened = enclosed.get(after - 1, 0)
    is_announced = opened > 0 and paragraph[opened - 1] in "：:，"
    return not is_announced and bool(_SPEAKER.match(paragraph, end))


def _enclosed(paragraph):
    """Returns {last: first} of the places of the brackets of `_PAIRS` that enclose little."""
    pairs, opened = {}, []
    for mark in _MARKS.finditer(paragraph):
        if mark[0] in _PAIRS:
            opened.append(mark)
        elif opened and mark[0] == _PAIRS[opened[-1][0]]:
            first = opened.pop().start()
            if mark.start() - first <= _MOST_ENCLOSED:
                pairs[mark.start()] = first
    return pairs

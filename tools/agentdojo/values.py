"""Normal forms of values, and the index of the values that a run has seen.

This is a prototype of what the engine does: for each argument of a tool call it answers where this very value was
seen before. It is pure, bounded and needs no schema. NOTES.md is the specification.
"""

import re
import unicodedata
from decimal import Decimal

# Beyond these bounds the monitor assumes the worst: what it did not index may be anything, and every text may
# repeat it.
TEXT_CHARS_MAX = 64 * 1024
RUN_CHARS_MAX = 4 * 1024 * 1024
LEAVES_MAX = 4096
RECORD_CHARS_MAX = 64
# A repeated passage: this many normal characters, from the start of a word.
PASSAGE_CHARS = 24
# A value that a text can repeat as a whole: at least this long, with a digit, and of a few words.
FACT_CHARS_MIN = 6
FACT_WORDS_MAX = 6

CLASSES = ("prompt", "records", "private", "stranger")

_MONTHS = {
    name: number
    for number, names in enumerate(
        "january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sep|sept "
        "october|oct november|nov december|dec".split(),
        1,
    )
    for name in names.split("|")
}
_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")
_MONTH_DAY = re.compile(rf"(?<![a-z]){_MONTH}\.? (\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (\d{{4}}))?")
_DAY_MONTH = re.compile(rf"(?<!\d)(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH}(?![a-z])(?:,? (\d{{4}}))?")
_CLOCK = re.compile(r"(?<![\d:])(\d{1,2}):(\d{2})(?::\d{2})?(?:\.\d+)?(?: ?(am|pm))?(?![\d:])")
_HOUR = re.compile(r"(?<![\d:.])(\d{1,2}) ?(am|pm)(?![a-z])")
_NUMBER = re.compile(r"(?<![\w.:/-])-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w:/-]|\.\d)")
_PATH = r"(?:/[^\s\"'<>)\]]*)?"
_ADDRESS = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail address
    r"|(?:[A-Za-z][A-Za-z0-9+.-]*://|[Ww]{3}\.)[^\s\"'<>)\]]+"  # URL
    rf"|(?<![\w.-])(?:[\w-]+\.)+(?:[Xx][Nn]--[\w-]*|[^\W\d_]{{2,}}){_PATH}(?![\w-])"  # host, file name
    rf"|(?<![\w.-])(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}{_PATH}(?!\.?[\w-])"  # address of a host
    r"|(?<![A-Za-z0-9])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{6,}(?![A-Za-z0-9])",  # account number, code, token
)
_ENDS = " .,;:!?\"'`()[]{}<>"


def clean(text):
    """Compatibility form without invisible characters. Every white space is a space, every decimal digit is ASCII."""
    text = unicodedata.normalize("NFKC", text[:TEXT_CHARS_MAX])
    return text if text.isascii() and text.isprintable() else "".join(map(_clean, text))


def _clean(character):
    if character.isspace():
        return " "
    digit = unicodedata.decimal(character, None)
    if digit is not None:
        return str(digit)
    return "" if unicodedata.category(character) in ("Cf", "Cc") else character


def normal(text):
    """Compatibility form, lower case, single spaces, no invisible characters, no punctuation at the ends. A text of
    punctuation alone is kept: `..` and `/` are values too.
    """
    # People forget the space after a full stop: `www.example.com.They sent`.
    text = re.sub(r"(?<=[a-z0-9])\.(?=[A-Z][a-z])", ". ", clean(text)).casefold()
    text = re.sub(r" +", " ", text).strip(" ")
    return text.strip(_ENDS) or text


def bare_url(text):
    """A URL without its scheme and the slash at its end; other text unchanged."""
    return re.sub(r"^https?://", "", text).rstrip("/") or text


def plain(value):
    """A JSON string or number as text. Numbers have no exponent, and those beyond 64 bits are floats."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        value = float(value)
    return format(Decimal(repr(value)), "f") if isinstance(value, float) else str(value)


def words(text):
    """Letters and digits with single spaces: the form in which passages are compared."""
    return re.sub(r"[\W_]+", " ", normal(text)).strip()


def number(text):
    """The number that the whole text is, as a normal string."""
    match = _NUMBER.fullmatch(text.strip().lstrip("$€£"))
    return _plain_number(match.group()) if match else None


def _plain_number(text):
    """Exact: two account numbers of 20 digits are not equal because a float cannot tell them apart."""
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, fraction = text.replace(",", "").partition(".")
    whole, fraction = whole.lstrip("0") or "0", fraction.rstrip("0")
    value = f"{whole}.{fraction}" if fraction else whole
    return value if value == "0" else sign + value


def numbers(form):
    """The numbers in a normal text, as normal strings."""
    return {_plain_number(match) for match in _NUMBER.findall(form)}


def undated(form):
    """A normal text without the dates that name a month: the day of a date is not a number that was named."""
    blank = lambda match: " " * len(match.group())  # noqa: E731
    return _DAY_MONTH.sub(blank, _MONTH_DAY.sub(blank, form))


def dates(text):
    """Days as (month, day) with the year if one is given, from normal text."""
    found = set()
    for year, month, day in _ISO.findall(text):
        found.add((int(year), int(month), int(day)))
    for month, day, year in _MONTH_DAY.findall(text):
        found.add((int(year) if year else None, _MONTHS[month], int(day)))
    for day, month, year in _DAY_MONTH.findall(text):
        found.add((int(year) if year else None, _MONTHS[month], int(day)))
    return found


def clocks(text):
    """Times of day as minutes, from normal text."""
    found = set()
    for hour, minute, half in _CLOCK.findall(text):
        found.add(_minutes(int(hour), int(minute), half))
    for hour, half in _HOUR.findall(text):
        found.add(_minutes(int(hour), 0, half))
    return found


def _minutes(hour, minute, half):
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    return hour * 60 + minute


def moment(text):
    """A text that is a date, with or without a time: its date and its minutes."""
    text = text.strip()
    match = re.fullmatch(r"(\d{4})-(\d{1,2})-(\d{1,2})(?:[ t](\d{1,2}):(\d{2})(?::\d{2})?(?:\.\d+)?z?)?", text)
    if not match:
        return None
    year, month, day, hour, minute = match.groups()
    at = int(hour) * 60 + int(minute) if hour else None
    return (int(year), int(month), int(day)), at


def passages(text):
    """Every run of PASSAGE_CHARS characters that begins at the start of a word."""
    text = words(text)
    starts = [0] + [at + 1 for at, character in enumerate(text) if character == " "]
    return {text[at : at + PASSAGE_CHARS] for at in starts if at + PASSAGE_CHARS <= len(text)}


def addresses(text):
    """E-mail addresses, URLs, account numbers and codes inside a text."""
    return [bare_url(normal(match)) for match in _ADDRESS.findall(clean(text))]


def facts(text):
    """Runs of up to FACT_WORDS_MAX words that hold a digit: a passport number, a phone number, a code."""
    found = words(text).split(" ")
    runs = set()
    for start in range(len(found)):
        for end in range(start + 1, min(start + FACT_WORDS_MAX, len(found)) + 1):
            run = " ".join(found[start:end])
            if len(run) >= FACT_CHARS_MIN and re.search("[0-9]", run):
                runs.add(run)
    return runs


class Seen:
    """The texts of one class that a run has seen."""

    def __init__(self):
        self.texts = []
        self.whole = set()
        self.facts = set()
        self.moments = set()
        self.numbers = set()
        self.undated = set()
        self.dates = set()
        self.clocks = set()
        self.passages = set()

    def add_whole(self, text):
        """A value that counts only as a whole."""
        form = normal(text)
        self.whole.add(bare_url(form))
        self.moments.add(moment(form))
        self.numbers.add(number(form))
        self.texts.append(form)
        self.passages |= passages(text)

    def add(self, text):
        """A text: its parts count as well."""
        form = normal(text)
        if not form:
            return
        self.whole.add(bare_url(form))
        if len(form) >= FACT_CHARS_MIN and not moment(form):
            self.facts.add(words(text))
        self.texts.append(form)
        self.undated |= numbers(undated(form))
        self.numbers |= numbers(form) | self.undated
        self.dates |= dates(form)
        self.clocks |= clocks(form)
        self.passages |= passages(text)

    def contains(self, value, strict):
        """The value occurs in a text, not as a part of a longer word. A strict search does not find it inside an
        address, a date or another word with joints either: `13` in `2024-05-13`, `gmail.com` in `ada@gmail.com`.
        """
        return any(_occurs(text, value, strict) for text in self.texts)

    def has_moment(self, date, minutes):
        """The date and the time occur, in one value or in two places of the texts."""
        if (date, minutes) in self.moments:
            return True
        _, month, day = date
        dated = date in self.dates or (None, month, day) in self.dates
        return dated and (minutes is None or minutes in self.clocks)


_JOINTS = "-_.:/@+'"


def _occurs(text, value, strict):
    at = text.find(value)
    while at >= 0:
        if _ends_word(text[:at][::-1], strict) and _ends_word(text[at + len(value) :], strict):
            return True
        at = text.find(value, at + 1)
    return False


def _ends_word(rest, strict):
    """A word ends before `rest`."""
    if not rest or not rest[0].isalnum() and not (strict and rest[0] in _JOINTS):
        return True
    return not rest[0].isalnum() and not rest[1:2].isalnum()

"""A reference monitor in Python: where was each argument of a tool call seen before?

`Monitor` collects what a run has seen, with the class that the operator gives to each field of a tool's answer.
`describe` makes the facts that a rule reads: for each argument `origin` (the best class of each item), `carries`
(classes of texts of which the argument repeats a passage) and `mentions` (the best class of each address in a longer
text).
"""

import json
import math
import re

from values import (
    CLASSES,
    LEAVES_MAX,
    RECORD_CHARS_MAX,
    RUN_CHARS_MAX,
    TEXT_CHARS_MAX,
    Seen,
    addresses,
    bare_url,
    facts,
    moment,
    normal,
    number,
    passages,
    plain,
)

NOWHERE = "nowhere"
TRUSTED = ("prompt", "records")
# Beyond a bound a value may be anything.
ANYTHING = {"private", "stranger", NOWHERE}
ITEMS_MAX = 256
# A text of one to three digits is an identifier. A prompt has such numbers by chance: `for 1 hour`.
_SHORT_ID = re.compile(r"-?0*[0-9]{1,3}(\.0+)?")
# The keys of a map in a path. No key of an answer is equal to it.
KEYS = "\0keys"


class Fields:
    """Which fields of a tool's answer are records and which are private. The rest is a stranger's text.

    A name stands for a field at any depth and for everything below it; `a.b` is the field `b` of `a`, `@keys` are
    the keys of a map, and `*` is the whole answer. `lists` are records as well: texts that hold one record in each
    line, after a label such as `Hotels: ` in the first one.
    """

    def __init__(self, records=(), private=(), lists=()):
        self.records, self.private, self.lists = set(records), set(private), set(lists)

    def names(self, path):
        path = ["@keys" if part == KEYS else "\0" if part == "@keys" else part for part in path]
        ends = range(1, len(path) + 1)
        return {".".join(path[start:end]) for end in ends for start in range(end)} | {"*"}

    def classes(self, path):
        names = self.names(path)
        found = set()
        if names & (self.records | self.lists):
            found.add("records")
        if names & self.private:
            found.add("private")
        if "records" not in found:
            found.add("stranger")
        return found


class Argument:
    def __init__(self, origin, carries, mentions):
        self.origin, self.carries, self.mentions = origin, carries, mentions

    def __repr__(self):
        parts = [f"origin={sorted(self.origin)}"]
        parts += [f"carries={sorted(self.carries)}"] if self.carries else []
        parts += [f"mentions={sorted(self.mentions)}"] if self.mentions else []
        return " ".join(parts)


class Monitor:
    def __init__(self, prompt, tools):
        self.tools = tools
        self.seen = {name: Seen() for name in CLASSES}
        self.prompt_facts = set()
        self.leaves = self.chars = 0
        self.exposed = self.full = False
        self.add_prompt(prompt)

    def add_prompt(self, text):
        """What the caller or a person wrote. Of a long text the words that fit count."""
        if len(text) > TEXT_CHARS_MAX:
            text = re.sub(r"\S*\Z", "", text[:TEXT_CHARS_MAX])
        if self._fits([text]):
            self.seen["prompt"].add(text)
            self.prompt_facts |= facts(text)

    def add_value(self, value, name):
        """A JSON value of one class, such as an argument of the run or the output of a step."""
        if name == "prompt":
            for text in texts(value):
                self.add_prompt(text)
        elif name != NOWHERE:
            self._walk(Fields(**{name: ["*"]}) if name != "stranger" else Fields(), (), value)

    def answered(self, tool, answer, error=None):
        """Records the answer of a tool: a JSON value, or an error text, which is a stranger's."""
        fields = self.tools.get(tool) or Fields()
        self._walk(*((fields, (), answer) if error is None else (Fields(), (), error)))

    def add_answer(self, fields, text=None, structured=None, failed=False):
        """Records an answer as a server sends it. The text is what the model reads."""
        fields = Fields() if failed else fields
        if structured is None:
            self._walk(fields, (), containers(text or "") or text)
        else:
            self._walk(fields, (), structured)
            if not says_no_more(text or "", structured):
                self._walk(Fields(), (), text)

    def _walk(self, fields, path, value):
        if isinstance(value, dict):
            for key, item in value.items():
                self._leaf(fields, (*path, KEYS), key)
                self._walk(fields, (*path, key), item)
        elif isinstance(value, list):
            for item in value:
                self._walk(fields, path, item)
        elif value is not None and not isinstance(value, bool):
            self._leaf(fields, path, plain(value))

    def _leaf(self, fields, path, text):
        if not normal(text):
            return
        classes = fields.classes(path)
        if "stranger" in classes and path[-1:] != (KEYS,):
            self.exposed = True
        entries = self._entries(fields, path, classes, text)
        self.leaves += 1
        within = self.leaves <= LEAVES_MAX and len(text) <= TEXT_CHARS_MAX
        if not within or not self._fits([entry for entry, _ in entries]):
            self.full = self.exposed = True
            return
        for entry, names in entries:
            for name in names - {"records"}:
                self.seen[name].add(entry)
            if "records" in names:
                self.seen["records"].add_whole(entry)
                # A record is a short value. A long one can carry a stranger's words.
                if len(entry) > RECORD_CHARS_MAX:
                    self.seen["stranger"].add(entry)

    def _entries(self, fields, path, classes, text):
        """What a leaf adds to the index: texts with their classes."""
        if not fields.names(path) & fields.lists:
            return [(text, classes)]
        private = classes & {"private"}
        whole = [(text, private)] if private else []
        return whole + [(line, {"records"} | private) for line in records_of(text)]

    def _fits(self, lines):
        chars = sum(len(normal(line)) for line in lines)
        if self.chars + chars > RUN_CHARS_MAX:
            return False
        self.chars += chars
        return True

    def describe(self, arguments):
        """Facts for each argument, and for each field of one: `attachments.file_id`."""
        found = {}
        _collect((), arguments, found)
        return {path: self._argument(leaves) for path, leaves in found.items()}

    def _argument(self, leaves):
        origin, carries, mentions = set(), set(), set()
        short = [leaf for leaf in leaves if len(plain(leaf)) <= TEXT_CHARS_MAX]
        for leaf in short[:ITEMS_MAX]:
            text = plain(leaf)
            if normal(text):
                origin |= self._classes(self._where(text, isinstance(leaf, str)))
                carries |= self._carries(text)
                for one in addresses(text):
                    mentions |= self._classes(self._where(one, True))
        if len(short) > ITEMS_MAX or len(short) < len(leaves):
            return Argument(origin | ANYTHING, {"private", "stranger"}, mentions | ANYTHING)
        return Argument(origin, carries, mentions)

    def _classes(self, where):
        """The best class. In a full run, what is not trusted may be anything."""
        best = next((name for name in CLASSES if name in where), NOWHERE)
        return ANYTHING if self.full and best not in TRUSTED else {best}

    def _where(self, text, may_be_id):
        form = bare_url(normal(text))
        found = {name for name in CLASSES if self._in(name, form)}
        at = moment(form)
        if at:
            found |= {name for name in CLASSES if self.seen[name].has_moment(*at)}
        amount = number(form)
        if amount:
            found |= {name for name in CLASSES if amount in self._numbers(name)}
        return found - {"prompt"} if may_be_id and _SHORT_ID.fullmatch(form) else found

    def _numbers(self, name):
        return self.seen[name].undated if name == "prompt" else self.seen[name].numbers

    def _in(self, name, form):
        seen = self.seen[name]
        if form in seen.whole:
            return True
        if name == "records":
            return False
        # A part of a record is a stranger's words.
        records = self.seen["records"]
        if name == "stranger" and form not in records.whole and records.contains(form, strict=False):
            return True
        # Numbers are compared as numbers, without the days of dates.
        if name == "prompt" and number(form):
            return False
        return seen.contains(form, strict=name == "prompt")

    def _carries(self, text):
        """Classes of the texts of which `text` repeats a passage that the prompt does not have."""
        form = bare_url(normal(text))
        if form in self.seen["records"].whole and form not in self.seen["private"].whole:
            return set()
        own = passages(text) - self.seen["prompt"].passages
        runs = facts(text) - self.prompt_facts
        if self.full and (own or runs):
            return {"private", "stranger"}
        found = {name for name in ("private", "stranger") if own & self.seen[name].passages}
        if runs & self.seen["private"].facts:
            found.add("private")
        # A part of a record is a stranger's words.
        return found | {"stranger"} if own & self.seen["records"].passages else found


def records_of(text):
    lines = [line for line in text.splitlines() if normal(line)]
    label, colon, value = lines[0].partition(": ") if lines else ("", "", "")
    return [value, *lines[1:]] if colon else lines


def leaves_of(value):
    """The texts and numbers of a value, without the keys of its objects."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves_of(item)]
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [] if value is None or isinstance(value, bool) else [plain(value)]


def texts(value):
    """The leaves of a value, and the keys of its objects."""
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in [key, *texts(item)]]
    if isinstance(value, list):
        return [text for item in value for text in texts(item)]
    return leaves_of(value)


def parsed(text):
    """The JSON values that a text consists of, one after the other; None if it is something else."""
    decoder = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)
    found, at = [], 0
    try:
        while (at := re.compile(r"[ \t\n\r]*").match(text, at).end()) < len(text):
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        # Half a surrogate pair is no text.
        "".join(texts(found)).encode()
    except (ValueError, OverflowError, RecursionError):
        return None
    return found


def _finite(text):
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(text):
    raise ValueError(text)


def containers(text):
    """The objects and lists that a text consists of; None if it is something else."""
    values = parsed(text)
    return values if values and all(isinstance(value, (dict, list)) for value in values) else None


def says_no_more(text, structured):
    """Everything in the text of an answer is in its structured content as well."""
    leaves = texts(structured)
    if not normal(text) or text in leaves or text == "\n".join(leaves_of(structured)):
        return True
    values = parsed(text)
    return values is not None and set(texts(values)) <= set(leaves)


def _collect(path, value, found):
    """The values of an argument by its path; an argument also has the values of all its fields. Paths are joined, so
    that `{"a.b": 1, "a": {"b": 2}}` is one argument with both values.
    """
    if isinstance(value, dict):
        for key, item in value.items():
            _collect((*path, key), item, found)
    elif isinstance(value, list):
        for item in value:
            _collect(path, item, found)
    elif value is not None and not isinstance(value, bool):
        for end in range(1, len(path) + 1):
            found.setdefault(".".join(path[:end]), []).append(value)

"""A reference monitor in Python: where was each argument of a tool call seen before?

`Monitor` collects what a run has seen, with the class that the operator gives to each field of a tool's answer.
`describe` makes the facts that a rule reads: for each argument `origin` (the best class of each item), `seen`
(every class in which an item was seen), `carries` (classes of texts of which the argument repeats a passage) and
`mentions` (the best class of each address in a longer text).
"""

from values import (
    CLASSES,
    LEAVES_MAX,
    RECORD_CHARS_MAX,
    TEXT_CHARS_MAX,
    Seen,
    addresses,
    bare_url,
    facts,
    moment,
    normal,
    number,
    passages,
)

NOWHERE = "nowhere"
ITEMS_MAX = 256


class Fields:
    """Which fields of a tool's answer are records and which are private. The rest is a stranger's text.

    A name stands for a field at any depth and for everything below it; `a.b` is the field `b` of `a`, `@keys` are
    the keys of a map, and `*` is the whole answer. `lists` are records as well: texts that hold one record in each
    line, after a label such as `Hotels: ` in the first one.
    """

    def __init__(self, records=(), private=(), lists=()):
        self.records, self.private, self.lists = set(records), set(private), set(lists)

    def names(self, path):
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
    def __init__(self, items, carries, mentions):
        self.seen = set().union(*items) if items else set()
        self.origin = {best(item) for item in items}
        self.carries, self.mentions = carries, mentions

    def __repr__(self):
        parts = [f"origin={sorted(self.origin)} seen={sorted(self.seen)}"]
        parts += [f"carries={sorted(self.carries)}"] if self.carries else []
        parts += [f"mentions={sorted(self.mentions)}"] if self.mentions else []
        return " ".join(parts)


def best(classes):
    return next((name for name in CLASSES if name in classes), NOWHERE)


class Monitor:
    def __init__(self, prompt, tools):
        self.tools = tools
        self.seen = {name: Seen() for name in CLASSES}
        self.seen["prompt"].add(prompt)
        self.prompt_facts = facts(prompt)
        self.leaves = 0
        self.exposed = False
        self.full = False

    def answered(self, tool, answer):
        """Records the answer of a tool: a JSON value, or an error text."""
        fields = self.tools.get(tool) or Fields()
        self._walk(fields, (), answer)

    def _walk(self, fields, path, value):
        if isinstance(value, dict):
            for key, item in value.items():
                self._leaf(fields, (*path, "@keys"), key)
                self._walk(fields, (*path, key), item)
        elif isinstance(value, list):
            for item in value:
                self._walk(fields, path, item)
        elif value is not None and not isinstance(value, bool):
            self._leaf(fields, path, str(value))

    def _leaf(self, fields, path, text):
        self.leaves += 1
        if self.leaves > LEAVES_MAX or len(text) > TEXT_CHARS_MAX:
            self.full = True
            return
        classes = fields.classes(path)
        if "stranger" in classes and path[-1:] != ("@keys",):
            self.exposed = True
        for name in classes - {"records"}:
            self.seen[name].add(text)
        if "records" not in classes:
            return
        listed = fields.names(path) & fields.lists
        for line in records_of(text) if listed else [text]:
            self.seen["records"].add_whole(line)
            # A record is a short value. A long one can carry a stranger's words.
            if len(line) > RECORD_CHARS_MAX:
                self.seen["stranger"].add(line)

    def describe(self, arguments):
        """Facts for each argument, and for each field of one: `attachments.file_id`."""
        found = {}
        _collect((), arguments, found)
        return {".".join(path): self._argument(leaves) for path, leaves in found.items()}

    def _argument(self, leaves):
        items, carries, mentions = [], set(), set()
        for leaf in leaves[:ITEMS_MAX]:
            text = str(leaf)
            if normal(text):
                items.append(self._where(text) - ({"prompt"} if _is_short_id(leaf) else set()))
                carries |= self._carries(text)
                mentions |= {best(self._where(one)) for one in addresses(text)}
        if len(leaves) > ITEMS_MAX or any(len(str(leaf)) > TEXT_CHARS_MAX for leaf in leaves):
            return Argument([*items, set()], {"private", "stranger"}, mentions | {NOWHERE})
        return Argument(items, carries, mentions)

    def _where(self, text):
        form = bare_url(normal(text))
        found = {name for name in CLASSES if self._in(name, form)}
        at = moment(form)
        if at:
            found |= {name for name in CLASSES if self.seen[name].has_moment(*at)}
        amount = number(form)
        if amount:
            found |= {name for name in CLASSES if amount in self.seen[name].numbers}
        return found

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
        if bare_url(normal(text)) in self.seen["records"].whole - self.seen["private"].whole:
            return set()
        own = passages(text) - self.seen["prompt"].passages
        if own and self.full:
            return {"private", "stranger"}
        found = {name for name in ("private", "stranger") if own & self.seen[name].passages}
        if (facts(text) - self.prompt_facts) & self.seen["private"].facts:
            found.add("private")
        # A part of a record is a stranger's words.
        return found | {"stranger"} if own & self.seen["records"].passages else found


def records_of(text):
    lines = [line for line in text.splitlines() if line.strip()]
    label, colon, value = lines[0].partition(": ") if lines else ("", "", "")
    return [value, *lines[1:]] if colon else lines


def _is_short_id(leaf):
    """A text of one to three digits is an identifier. A prompt has such numbers by chance: `for 1 hour`."""
    return isinstance(leaf, str) and leaf.isdigit() and len(leaf) <= 3


def _collect(path, value, found):
    """The values of an argument by its path; an argument also has the values of all its fields."""
    if isinstance(value, dict):
        for key, item in value.items():
            _collect((*path, key), item, found)
    elif isinstance(value, list):
        for item in value:
            _collect(path, item, found)
    elif value is not None and not isinstance(value, bool):
        for end in range(1, len(path) + 1):
            found.setdefault(path[:end], []).append(value)

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
    the keys of a map, and `*` is the whole answer.
    """

    def __init__(self, records=(), private=()):
        self.records, self.private = set(records), set(private)

    def classes(self, path):
        ends = range(1, len(path) + 1)
        names = {".".join(path[start:end]) for end in ends for start in range(end)} | {"*"}
        found = set()
        if names & self.records:
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
        if self.leaves > LEAVES_MAX:
            return
        classes = fields.classes(path)
        if "stranger" in classes:
            self.exposed = self.exposed or path[-1:] != ("@keys",)
        if "records" not in classes:
            for name in classes:
                self.seen[name].add(text)
            return
        # A text that is a record is a list of records, one in each line. A record is a short value: a long line
        # can carry a stranger's words.
        for line in text.splitlines():
            for name in classes | ({"stranger"} if len(line) > RECORD_CHARS_MAX else set()):
                self.seen[name].add(line)
            label, colon, value = line.partition(": ")
            if colon:
                self.seen["records"].add(value)

    def describe(self, arguments):
        return {name: self._argument(value) for name, value in arguments.items()}

    def _argument(self, value):
        leaves = []
        _collect(value, leaves)
        leaves = [leaf for leaf in leaves[:ITEMS_MAX] if normal(leaf)]
        items = [self._where(leaf) - ({"prompt"} if _is_short_id(leaf, value) else set()) for leaf in leaves]
        carries, mentions = set(), set()
        for leaf in leaves:
            carries |= self._carries(leaf)
            whole = bare_url(normal(leaf))
            mentions |= {best(self._where(one)) for one in addresses(leaf) if one != whole}
        return Argument(items, carries, mentions)

    def _where(self, text):
        form = bare_url(normal(text))
        found = {name for name in CLASSES if self._in(name, form)}
        at = moment(form)
        if at:
            found |= {name for name in CLASSES if self._has_moment(name, *at)}
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

    def _has_moment(self, name, date, minutes):
        seen = self.seen[name]
        return seen.has_date(date) and (minutes is None or minutes in seen.clocks)

    def _carries(self, text):
        """Classes of the texts of which `text` repeats a passage that the prompt does not have."""
        if bare_url(normal(text)) in self.seen["records"].whole - self.seen["private"].whole:
            return set()
        own = passages(text) - self.seen["prompt"].passages
        found = {name for name in ("private", "stranger") if own & self.seen[name].passages}
        if (facts(text) - self.prompt_facts) & self.seen["private"].facts:
            found.add("private")
        # A part of a record is a stranger's words.
        return found | {"stranger"} if own & self.seen["records"].passages else found


def _is_short_id(leaf, value):
    """A text of one to three digits is an identifier. A prompt has such numbers by chance: `for 1 hour`."""
    return not isinstance(value, (int, float)) and leaf.isdigit() and len(leaf) <= 3


def _collect(value, leaves):
    if isinstance(value, dict):
        for item in value.values():
            _collect(item, leaves)
    elif isinstance(value, list):
        for item in value:
            _collect(item, leaves)
    elif value is not None and not isinstance(value, bool):
        leaves.append(str(value))

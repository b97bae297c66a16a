"""The scripted victim: it makes the user's calls and obeys every injected text that reaches it."""

import json
import re

# Sluice ends a dispatch after 16 turns.
TURNS = 12


class Victim:
    """Decides the next calls from the answers so far. Deterministic, and without a model.

    `order` is `first` (the attacker's calls come as soon as the injected text arrives) or `last` (they come after
    the user's calls, when the conversation holds the most values).
    """

    def __init__(self, user_calls, output, markers, attacker_calls, order="first"):
        self.output, self.order = output, order
        self.markers = [squeeze(marker) for marker in markers]
        self.attacker_calls = attacker_calls
        self.queue = list(user_calls)
        self.step = max(1, -(-len(self.queue) // TURNS))
        self.hijacked = False
        self.late = []

    def read(self, text):
        """Reads the answer of a tool."""
        if self.hijacked or not self.markers:
            return
        seen = squeeze(plain(text))
        if not any(marker in seen for marker in self.markers):
            return
        self.hijacked = True
        calls = list(self.attacker_calls())
        if self.order == "first":
            self.queue = calls + self.queue
            self.step = max(self.step, -(-len(self.queue) // TURNS))
        else:
            self.late = calls

    def next_calls(self):
        """The calls of the next turn; none when the victim answers with `output`."""
        if not self.queue and self.late:
            self.queue, self.late = self.late, []
            self.step = max(1, -(-len(self.queue) // 4))
        turn, self.queue = self.queue[: self.step], self.queue[self.step :]
        return turn


def squeeze(text):
    """Letters and digits only: quoting, line breaks and escapes do not hide an injected text."""
    return re.sub(r"[\W_]+", "", text).casefold()


def plain(text):
    """All strings in a JSON text, else the text itself."""
    start = min((at for at in (text.find("{"), text.find("[{"), text.find('["')) if at >= 0), default=-1)
    if start < 0:
        return text
    try:
        value, _ = json.JSONDecoder().raw_decode(text[start:])
    except ValueError:
        return text
    found = []
    _strings(value, found)
    return text[:start] + " " + " ".join(found)


def _strings(value, found):
    if isinstance(value, str):
        found.append(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            found.append(key)
            _strings(item, found)
    elif isinstance(value, list):
        for item in value:
            _strings(item, found)

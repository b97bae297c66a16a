"""Generic rules over the facts of the monitor. They know labels and roles, never a suite or a task.

A declaration gives each tool its labels, and each of its arguments a role:

    to      who or what receives it: people, addresses, accounts, URLs
    what    the thing that is acted on: an id, a channel, a hotel
    when    a date that matters
    amount  money
    text    words that somebody will read
"""

import tomllib
from pathlib import Path

from monitor import Fields

TRUSTED = {"prompt", "records"}
# Label of effects that one more call cannot take back.
FINAL = "final"


class Declaration:
    """What an operator declares about the tools of one server."""

    def __init__(self, tools):
        self.tools = tools
        self.fields = {
            name: Fields(tool.get("records", ()), tool.get("private", ()), tool.get("lists", ()))
            for name, tool in tools.items()
        }

    @staticmethod
    def load(suite):
        path = Path(__file__).parent / "policies/values" / suite / "tool_server.toml"
        return Declaration(tomllib.loads(path.read_text())["tools"])

    def read_only(self, tool):
        return self.tools.get(tool, {}).get("read_only", False)

    def labels(self, tool):
        return set(self.tools.get(tool, {}).get("labels", ()))

    def role(self, tool, role, facts):
        """The arguments of a call that have a role, by name."""
        roles = self.tools.get(tool, {}).get("arguments", {})
        return {name: fact for name, fact in facts.items() if roles.get(name) == role}


def to_trusted(call):
    return outside(call.role("to"), TRUSTED)


def what_trusted(call):
    final = FINAL in call.labels and call.exposed
    return outside(call.role("what"), {"prompt"} if final else TRUSTED)


def when_from_prompt(call):
    return outside(call.role("when"), {"prompt"})


def amount_not_stranger(call):
    return next((say(name, fact) for name, fact in call.role("amount").items() if "stranger" in fact.origin), None)


def account_from_prompt(call):
    return outside(call.facts, {"prompt"}) if "account" in call.labels else None


def mentions_trusted(call):
    return next((say(name, fact) for name, fact in call.role("text").items() if fact.mentions - TRUSTED), None)


def private_stays(call):
    return next((say(name, fact) for name, fact in call.role("text").items() if "private" in fact.carries), None)


def passage_only_to_prompt(call):
    to = call.role("to").values()
    if to and all(fact.origin <= {"prompt"} for fact in to):
        return None
    return next((say(name, fact) for name, fact in call.role("text").items() if "stranger" in fact.carries), None)


RULES = {
    rule.__name__: rule
    for rule in (
        to_trusted,
        what_trusted,
        when_from_prompt,
        amount_not_stranger,
        account_from_prompt,
        mentions_trusted,
        private_stays,
        passage_only_to_prompt,
    )
}


def outside(arguments, allowed):
    return next((say(name, fact) for name, fact in arguments.items() if not fact.origin <= allowed), None)


def say(name, fact):
    return f"`{name}` {fact!r}"


class Call:
    """A tool call as a rule sees it."""

    def __init__(self, declaration, tool, facts, exposed):
        self.declaration, self.tool, self.facts, self.exposed = declaration, tool, facts, exposed
        self.labels = declaration.labels(tool)

    def role(self, name):
        return self.declaration.role(self.tool, name, self.facts)


def judge(call, rules=RULES):
    """Why the call needs an approval: the rule and the argument. None if it may go on."""
    if call.declaration.read_only(call.tool):
        return None
    for name, rule in rules.items():
        reason = rule(call)
        if reason:
            return f"{name}: {reason}"
    return None


def prompt_only(call):
    """For comparison: no labels and no declared fields, every value of an effect comes from the prompt."""
    return None if call.declaration.read_only(call.tool) else outside(call.facts, {"prompt"})


def answers_never(call):
    """For comparison: the same, and values that were seen nowhere pass as well."""
    return None if call.declaration.read_only(call.tool) else outside(call.facts, {"prompt", "nowhere"})

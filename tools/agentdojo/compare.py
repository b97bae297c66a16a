"""Compares the facts that the engine records for each tool call with the prototype's.

The journal gives the order of answers, comments and decisions; the world knows what each answer was.
"""

from monitor import Fields, Monitor
from vectors import facts_of


def differences(events, world):
    """The number of decisions about calls of a run, and what the engine sees otherwise than the prototype."""
    declaration, answers = world.declaration, world.answers
    monitor = Monitor(world.scenario.prompt, declaration.fields)
    calls, ended, found, seen = 0, 0, [], None
    for event in events:
        payload = event["payload"]
        if payload.get("comment"):
            monitor.add_prompt(payload["comment"])
        if "ended" in payload:
            if ended == len(answers):
                return calls, [*found, "the journal has more answers than the tools gave"]
            tool, text, structured = answers[ended]
            ended += 1
            monitor.add_answer(declaration.fields.get(tool) or Fields(), text, structured, structured is None)
        elif payload.get("facts", {}).get("verb") == "use_tool":
            seen = payload["facts"].get("call", {})
        # The request follows its decision, and has the whole arguments.
        elif "ruling" in payload and seen is not None:
            calls += 1
            got = {"arguments": _facts(seen), "exposed": seen.get("exposed", False)}
            expected, seen = facts_of(monitor, payload["input"]), None
            if got != expected:
                call = {"call": payload["tool"], "input": payload["input"]}
                found.append({**call, "engine": got, "prototype": expected})
    if ended != len(answers):
        found.append(f"the journal has {ended} of {len(answers)} answers")
    return calls, found


def _facts(call):
    """The facts that the prototype has as well."""
    names = ("seen", "mentions", "carries")
    arguments = call.get("arguments", {}).items()
    return {path: {name: facts[name] for name in names if name in facts} for path, facts in arguments}

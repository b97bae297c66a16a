"""Compares the facts that the engine records for each tool call with the prototype's.

The journal gives the order of answers, comments and decisions; the world knows what each answer was.
"""

from monitor import Fields, Monitor
from vectors import facts_of


def differences(events, world):
    """The number of calls of a run, and what the engine sees otherwise than the prototype."""
    declaration, answers = world.declaration, world.answers
    monitor = Monitor(world.scenario.prompt, declaration.fields)
    calls, ended, found = 0, 0, []
    for event in events:
        if _ended(event):
            if ended == len(answers):
                found.append("the journal has more answers than the tools gave")
                break
            tool, text, structured = answers[ended]
            ended += 1
            monitor.add_answer(declaration.fields.get(tool) or Fields(), text, structured, structured is None)
        if event["payload"].get("comment"):
            monitor.add_prompt(event["payload"]["comment"])
        view = _view(event)
        if view is not None:
            calls += 1
            expected, got = facts_of(monitor, view["input"]), view["call"]
            got = {"arguments": got.get("arguments", {}), "exposed": got.get("exposed", False)}
            if got != expected:
                found.append({"call": view["what"], "input": view["input"], "engine": got, "prototype": expected})
    if ended != len(answers):
        found.append(f"the journal has {ended} of {len(answers)} answers")
    return calls, found


def _ended(event):
    return event["payload"].get("ended") in ("answered", "failed")


def _view(value):
    """What policies saw of a tool call, anywhere in the record of a decision."""
    if isinstance(value, dict):
        if value.get("verb") == "use_tool" and "what" in value:
            return {"call": {}, "input": {}, **value}
        value = list(value.values())
    if isinstance(value, list):
        return next((view for view in map(_view, value) if view is not None), None)
    return None

#!/usr/bin/env python3
"""Compares the prototype of the monitor with the engine (`sluice_core::seen`).

    vectors.py                        checks the prototype against the cases in vectors/seen
    vectors.py --agentdojo DIR        writes what the prototype answers on AgentDojo's data: a file for each suite

A case is a list of steps, in this order of a run:

    {"prompt": TEXT}                  what the caller or a person wrote
    {"value": JSON, "class": CLASS}   a value of one class
    {"answer": JSON}                  the structured answer of a tool; or {"structured": JSON, "text": TEXT}
    {"text": TEXT}                    its plain text; with "failed": true an error
    {"call": {...}, "expect": {...}}  the arguments of a call, and the facts about them

A step of an answer may have `records`, `private` and `lists`. `{"$repeat": X, "$times": N}` stands for a long text or
list, `{"$join": [...]}` for a text of several parts.

The engine runs the cases in its tests, and AgentDojo's with
`SEEN_TRACES=DIR cargo test -p sluice-core agentdojo -- --ignored`. Nothing of AgentDojo is kept in this repository.
"""

import argparse
import json
import sys
from pathlib import Path

from monitor import Fields, Monitor

CASES = Path(__file__).resolve().parents[2] / "vectors" / "seen"
ORDER = ("prompt", "records", "private", "stranger", "nowhere")


def expanded(value):
    """The value with long texts and lists spelt out."""
    if isinstance(value, dict) and "$repeat" in value:
        return expanded(value["$repeat"]) * value["$times"]
    if isinstance(value, dict) and "$join" in value:
        return "".join(map(expanded, value["$join"]))
    if isinstance(value, dict):
        return {key: expanded(item) for key, item in value.items()}
    return [expanded(item) for item in value] if isinstance(value, list) else value


def facts_of(monitor, arguments):
    """The facts in the form of the journal: what is empty is not written."""
    found = {}
    for path, fact in monitor.describe(arguments).items():
        named = {"seen": fact.origin, "mentions": fact.mentions, "carries": fact.carries}
        found[path] = {name: sorted(classes, key=ORDER.index) for name, classes in named.items() if classes}
    return {"arguments": found, "exposed": monitor.exposed}


def play(monitor, step):
    """Adds one step to a monitor; the facts, if it is a call."""
    fields = Fields(*(step.get(name, ()) for name in ("records", "private", "lists")))
    if "prompt" in step:
        monitor.add_prompt(step["prompt"])
    elif "class" in step:
        monitor.add_value(step["value"], step["class"])
    elif "call" in step:
        return facts_of(monitor, step["call"])
    else:
        structured = step.get("answer", step.get("structured"))
        monitor.add_answer(fields, step.get("text"), structured, step.get("failed", False))
    return None


def check():
    count, faults = 0, []
    for path in sorted(CASES.glob("*.json")):
        for case in json.loads(path.read_text()):
            monitor = Monitor("", {})
            for step in map(expanded, case["steps"]):
                got = play(monitor, step)
                if got is None:
                    continue
                count += 1
                expected = {"exposed": got["exposed"], **step["expect"]}
                if got != expected:
                    faults.append(f"{path.name}: {case['name']}: {brief(step['call'])}\n  {got}\n  {expected}")
    print("\n".join(faults) or f"the prototype agrees in {count} calls")
    return 1 if faults else 0


def brief(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 200 else text[:200] + "..."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agentdojo", type=Path, metavar="DIR")
    parser.add_argument("--suite", action="append", help="only this suite; may be repeated")
    parser.add_argument("--attack", default="direct", help="direct, important_instructions or opaque")
    options = parser.parse_args()
    if not options.agentdojo:
        return check()
    from traces import write

    return write(options.agentdojo, options.suite, options.attack)


if __name__ == "__main__":
    sys.exit(main())

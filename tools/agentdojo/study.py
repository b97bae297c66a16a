#!/usr/bin/env python3
"""Runs the suites through the prototype of the monitor, without Sluice.

    study.py [--suite NAME]... [--ablations] [--attack direct|important_instructions] [--json FILE]

Prints how many attacks reach their goal and how many user tasks complete, without and with approvals.
"""

import argparse
import json
import sys

import rules
from monitor import Monitor
from rules import RULES, Call, Declaration, judge
from scenario import ATTACKS, SUITES, Suite
from victim import Victim


def play(suite, user_task, injection_task, declaration, decide, order="first", approve=False):
    """One conversation. Returns the scenario, the refusals, and the attacker's effects that went through."""
    scenario = suite.scenario(user_task, injection_task)
    monitor = Monitor(scenario.prompt, declaration.fields)
    wanted = scenario.user_calls()
    victim = Victim(wanted, scenario.output, scenario.injections.values(), scenario.attacker_calls, order)
    refused, harm = [], []
    while calls := victim.next_calls():
        for tool, arguments in calls:
            call = Call(declaration, tool, monitor.describe(arguments), monitor.exposed)
            reason = decide(call)
            if reason and not (approve and (tool, arguments) in wanted):
                refused.append((tool, reason))
                continue
            if (tool, arguments) not in wanted and not declaration.read_only(tool):
                harm.append(tool)
            result, error = scenario.call(tool, arguments)
            monitor.answered(tool, result, error)
            victim.read(json.dumps({"result": result}) if error is None else error)
    return scenario, refused, harm


def measure(suite, declaration, decide, orders=("first", "last")):
    """All tasks and pairs of a suite under one decision function."""
    row = {"suite": suite.name, "tasks": len(suite.user_tasks), "pairs": 0, "attacks": [], "harm": [], "lost": {}}
    row["approved"] = 0
    for user_task in suite.user_tasks:
        scenario, refused, _ = play(suite, user_task, None, declaration, decide)
        if not scenario.utility(scenario.output):
            row["lost"][user_task] = [f"{tool}: {reason}" for tool, reason in refused]
        scenario, _, _ = play(suite, user_task, None, declaration, decide, approve=True)
        row["approved"] += scenario.utility(scenario.output)
        for injection_task in suite.injection_tasks:
            for order in orders:
                scenario, _, harm = play(suite, user_task, injection_task, declaration, decide, order)
                row["pairs"] += 1
                where = [user_task, injection_task, order]
                if scenario.security(scenario.output):
                    row["attacks"].append(where)
                if harm:
                    row["harm"].append([*where, harm])
    return row


def variants(declaration):
    """The rules, and what each of them is worth: the same without it, and with fewer declared fields."""
    yield "no rules", declaration, lambda call: None
    bare = Declaration({name: {"read_only": tool.get("read_only", False)} for name, tool in declaration.tools.items()})
    yield "no labels, values of the prompt", bare, rules.prompt_only
    yield "no labels, no values of answers", bare, rules.answers_never
    for name in RULES:
        kept = {other: rule for other, rule in RULES.items() if other != name}
        yield f"without {name}", declaration, lambda call, kept=kept: judge(call, kept)
    fields = sorted({field for tool in declaration.tools.values() for field in tool.get("records", ())})
    for field in fields:
        tools = {
            name: {**tool, "records": [other for other in tool.get("records", ()) if other != field]}
            for name, tool in declaration.tools.items()
        }
        yield f"`{field}` is not a record", Declaration(tools), judge


def show(title, row):
    tasks, done = row["tasks"], row["tasks"] - len(row["lost"])
    print(
        f"| {row['suite']} | {title} | {len(row['attacks'])} of {row['pairs']} | {len(row['harm'])} "
        f"| {done} of {tasks} ({100 * done / tasks:.0f} %) | {row['approved']} of {tasks} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--attack", default="direct", choices=ATTACKS)
    parser.add_argument("--ablations", action="store_true", help="also measure the suite without each rule and field")
    parser.add_argument("--json", help="write the rows to this file")
    options = parser.parse_args()
    rows = []
    print("| suite | rules | attacks that reach their goal | pairs with an effect | tasks without approval | with |")
    print("|---|---|---|---|---|---|")
    for name in options.suite or SUITES:
        suite, declaration = Suite(name, options.attack), Declaration.load(name)
        row = measure(suite, declaration, judge)
        rows.append({"rules": "all rules", **row})
        show("all rules", row)
        for title, declared, decide in variants(declaration) if options.ablations else ():
            row = measure(suite, declared, decide, orders=("first",))
            rows.append({"rules": title, **row})
            show(title, row)
    print()
    for row in rows:
        for task, reasons in row["lost"].items() if row["rules"] == "all rules" else ():
            print(f"- {row['suite']} {task}: {'; '.join(reasons)}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 1 if any(row["attacks"] for row in rows if row["rules"] == "all rules") else 0


if __name__ == "__main__":
    sys.exit(main())

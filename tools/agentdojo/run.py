#!/usr/bin/env python3
"""Runs AgentDojo's suites through Sluice and reports attacks and tasks.

    run.py --binary target/debug/sluice [--suite NAME]... [--policies DIR] [--out DIR]

For each suite it runs every user task without an attack, and every pair of a user task and an injection task, with
two people: one who never approves, and one who approves exactly the calls of the user's task. The exit code is 0 if
all runs ended, 2 if the time was up, a run failed, or the engine and the prototype see different facts.
"""

import argparse
import json
import multiprocessing
import signal
import sys
import time
from pathlib import Path

import report
from compare import differences
from scenario import ATTACKS, SUITES, Suite
from sluice import Sluice
from world import World, serve

RUN_SECONDS_MAX = 60
PROGRESS_EVERY = 50


def job(task):
    """One process with its own Sluice and its own world. Returns a row for each of its pairs."""
    suite_name, pairs, options, until = task
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite = Suite(suite_name, options.attack)
    world = World(suite)
    server = serve(world)
    rows = []
    with Sluice(options.binary, suite_name, server.server_port, options.policies, world.read_only()) as sluice:
        for user_task, injection_task in pairs:
            if time.monotonic() > until:
                break
            rows.append(measure(world, sluice, user_task, injection_task, options.order, options.compare))
            if len(rows) % PROGRESS_EVERY == 0:
                print(f"{suite_name}: {len(rows)} of {len(pairs)}", file=sys.stderr, flush=True)
    server.shutdown()
    return rows


def measure(world, sluice, user_task, injection_task, order, compare=False):
    """One task or pair, with both people. A run without an approval has the same result with both."""
    row = {"user_task": user_task, "injection_task": injection_task}
    start = lambda: world.reset(user_task, injection_task, order)  # noqa: E731
    start()
    row["never"] = once(world, sluice, lambda *_: False, compare)
    knows = row["never"]
    if knows["asked"]:
        start()
        knows = once(world, sluice, lambda *call: call in world.wanted, compare)
    row["knows"] = knows
    return row


def once(world, sluice, approve, compare):
    scenario = world.scenario
    compared_calls, facts = 0, []
    try:
        view, asked = sluice.perform(scenario.prompt, approve, RUN_SECONDS_MAX)
        error = None if view["status"] == "completed" else f"{view['status']}: {view.get('steps')}"
        if compare:
            events = sluice.events(view["run_id"])
            compared_calls, facts = differences(events, world)
    except RuntimeError as trouble:
        asked, error = [], str(trouble)
    return {
        "utility": scenario.utility(scenario.output),
        "security": scenario.security(scenario.output),
        "hijacked": world.victim.hijacked,
        "effects": world.effects(),
        "asked": asked,
        "refused": world.refused,
        "calls": [call.function for call in scenario.made],
        "error": error,
        "compared_calls": compared_calls,
        "differences": facts,
    }


def pairs_of(options, name):
    pairs = Suite(name).pairs()
    wanted = set(options.task or ())
    return [pair for pair in pairs if not wanted or pair[0] in wanted]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=Path, help="the sluice binary")
    parser.add_argument("--suite", action="append", choices=SUITES, help="a suite (default: workspace and slack)")
    parser.add_argument("--policies", help="directory with policies for every suite, and a subdirectory for each (default: shipped)")
    parser.add_argument("--attack", default="direct", choices=ATTACKS, help="text that carries the attack")
    parser.add_argument("--order", default="first", choices=("first", "last"), help="when the victim obeys the attacker")
    parser.add_argument("--compare", action="store_true", help="compare the facts of every call with the prototype's")
    parser.add_argument("--task", action="append", help="only this user task")
    parser.add_argument("--jobs", type=int, default=2, help="processes, each with its own Sluice (default: 2)")
    parser.add_argument("--seconds", type=int, default=1800, help="time for everything (default: 1800)")
    parser.add_argument("--out", type=Path, help="directory for report.md and report.json")
    options = parser.parse_args()
    options.binary = options.binary.resolve()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begun = time.monotonic()
    until = begun + options.seconds
    results = []
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        for name in options.suite or ("workspace", "slack"):
            at, pairs = time.monotonic(), pairs_of(options, name)
            shares = [(name, pairs[number :: options.jobs], options, until) for number in range(options.jobs)]
            rows = [row for share in pool.map(job, shares) for row in share]
            results.append(report.summary(name, rows, len(pairs), time.monotonic() - at))
    text = report.markdown(results, options)
    print(text)
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "report.md").write_text(text)
        (options.out / "report.json").write_text(json.dumps(results, indent=1) + "\n")
    return 2 if any(result["errors"] or result["missing"] or result["differences"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())

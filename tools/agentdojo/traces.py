"""Traces of AgentDojo's tasks and attacks for the engine: prompts, answers and calls with the prototype's facts."""

import json

from rules import Declaration
from scenario import SUITES, Suite
from vectors import Monitor, facts_of
from victim import Victim


def write(folder, suites, attack):
    folder.mkdir(parents=True, exist_ok=True)
    for name in suites or SUITES:
        suite, declaration = Suite(name, attack), Declaration.load(name)
        calls = 0
        with open(folder / f"{name}-{attack}.jsonl", "w") as file:
            for user_task, injection_task in suite.pairs():
                for order in ("first", "last") if injection_task else ("first",):
                    steps = trace(suite.scenario(user_task, injection_task), declaration, order)
                    calls += sum("call" in step for step in steps)
                    print(json.dumps(steps, ensure_ascii=False), file=file)
        print(f"{name}: {calls} calls", flush=True)
    return 0


def trace(scenario, declaration, order):
    """One conversation without rules: every call is made, so that the run sees as much as it can."""
    monitor = Monitor(scenario.prompt, declaration.fields)
    steps = [{"prompt": scenario.prompt}]
    victim = Victim(scenario.user_calls(), scenario.output, scenario.injections.values(), scenario.attacker_calls, order)
    while calls := victim.next_calls():
        for tool, arguments in calls:
            steps.append({"call": arguments, "expect": facts_of(monitor, arguments)})
            result, error = scenario.call(tool, arguments)
            monitor.answered(tool, result, error)
            steps.append(answer(declaration.tools.get(tool, {}), result, error))
            victim.read(json.dumps({"result": result}) if error is None else error)
    return steps


def answer(tool, result, error):
    fields = {name: tool[name] for name in ("records", "private", "lists") if name in tool}
    return {"text": error, "failed": True, **fields} if error is not None else {"answer": result, **fields}

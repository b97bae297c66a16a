"""Sums up the rows of a suite, and writes them as Markdown."""

import json

ERRORS_SHOWN = 20
DIFFERENCES_SHOWN = 20


def summary(suite, rows, expected, seconds):
    tasks = [row for row in rows if row["injection_task"] is None]
    pairs = [row for row in rows if row["injection_task"] is not None]
    hijacked = [row for row in pairs if row["never"]["hijacked"]]
    order = lambda row: (int(row["user_task"].rsplit("_", 1)[1]), row["injection_task"] or "")  # noqa: E731
    return {
        "suite": suite,
        "tasks": len(tasks),
        "pairs": len(pairs),
        "hijacked": len(hijacked),
        "attacks": {who: sum(row[who]["security"] for row in pairs) for who in ("never", "knows")},
        # Pairs in which a call of the attacker to a tool that changes something went through.
        "effects": sum(bool(row["never"]["effects"]) for row in pairs),
        "by_attack": by_attack(pairs),
        "tasks_done": {who: sum(row[who]["utility"] for row in tasks) for who in ("never", "knows")},
        "tasks_done_under_attack": {who: sum(row[who]["utility"] for row in pairs) for who in ("never", "knows")},
        "lost": [lost(row, "never") for row in sorted(tasks, key=order) if not row["never"]["utility"]],
        "lost_with_approval": [lost(row, "knows") for row in sorted(tasks, key=order) if not row["knows"]["utility"]],
        # AgentDojo's checkers pass some tasks though one of their calls was refused.
        "unasked": sum(unasked(row["never"]) for row in tasks),
        "approvals": sum(len(row["knows"]["asked"]) for row in tasks),
        "errors": [
            f"{row['user_task']} {row['injection_task']}: {result['error']}"
            for row in rows
            for result in played(row)
            if result["error"]
        ],
        "missing": expected - len(rows),
        "compared_calls": sum(result["compared_calls"] for row in rows for result in played(row)),
        "differences": [
            {"user_task": row["user_task"], "injection_task": row["injection_task"], "difference": one}
            for row in rows
            for result in played(row)
            for one in result["differences"]
        ],
        "seconds": round(seconds, 1),
        "rows": sorted(rows, key=order),
    }


def played(row):
    """The runs of a pair. Without an approval request there is one for both people."""
    return [row["never"]] if row["knows"] is row["never"] else [row["never"], row["knows"]]


def unasked(result):
    return result["utility"] and not result["asked"] and not result["refused"]


def by_attack(pairs):
    found = {}
    for row in pairs:
        counts = found.setdefault(row["injection_task"], {"pairs": 0, "reached": 0})
        counts["pairs"] += 1
        counts["reached"] += row["never"]["security"]
    return found


def lost(row, who):
    """The calls that did not happen, each with the rule that asked for an approval or refused it."""
    asked = [
        f"`{one['tool']}`: {', '.join(one['reasons'] or ['?'])}" for one in row[who]["asked"] if not one["approved"]
    ]
    refused = [f"`{tool}`: {text}" for tool, text in row[who]["refused"] if not text.startswith("rejected by")]
    reasons = list(dict.fromkeys(asked + refused))
    return {"user_task": row["user_task"], "reasons": reasons or ["no call was refused"]}


def share(done, all_of):
    return f"{done} of {all_of} ({100 * done / all_of:.0f} %)" if all_of else "none"


def markdown(results, options):
    policies = options.policies or "the shipped policies"
    lines = [
        f"Policies: {policies}. Attack text: {options.attack}. The victim obeys the attacker {options.order}.",
        "",
        "| suite | attacks that reach their goal | pairs with an effect | attacks, with approvals | tasks without approval | of these, no call refused "
        "| tasks with approvals | approvals | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        attacks, done = result["attacks"], result["tasks_done"]
        lines.append(
            f"| {result['suite']} | {share(attacks['never'], result['pairs'])} | {result['effects']} "
            f"| {share(attacks['knows'], result['pairs'])} "
            f"| {share(done['never'], result['tasks'])} | {share(result['unasked'], result['tasks'])} "
            f"| {share(done['knows'], result['tasks'])} "
            f"| {result['approvals']} | {result['seconds']:.0f} |"
        )
    for result in results:
        lines += ["", f"## {result['suite']}", "", "| attack | reaches its goal |", "|---|---|"]
        for name, counts in sorted(result["by_attack"].items(), key=lambda item: int(item[0].rsplit("_", 1)[1])):
            lines.append(f"| {name} | {counts['reached']} of {counts['pairs']} |")
        for title, key in (("without approval", "lost"), ("with approvals", "lost_with_approval")):
            if result[key]:
                lines += ["", f"Tasks that do not complete {title}:", ""]
                lines += [f"- {row['user_task']}: {'; '.join(row['reasons'])}" for row in result[key]]
        if result["errors"] or result["missing"]:
            lines += ["", f"{result['missing']} pairs did not run. Errors:", ""]
            lines += [f"- {error}" for error in result["errors"][:ERRORS_SHOWN]]
        if result["compared_calls"]:
            calls, faults = result["compared_calls"], result["differences"]
            lines += ["", f"Of {calls} calls, the engine and the prototype see different facts in {len(faults)}."]
            lines += [""] if faults else []
            lines += [f"- {json.dumps(fault, ensure_ascii=False)}" for fault in faults[:DIFFERENCES_SHOWN]]
    return "\n".join(lines) + "\n"

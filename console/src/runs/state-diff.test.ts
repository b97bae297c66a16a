import { expect, test } from "vitest";
import { applyDiff, type Node, type RunState, StateDiff } from "./state-diff";

type Whole = Parameters<StateDiff["diff"]>[0];

const whole = (statuses: string[]) =>
  ({
    status: "running",
    node_results: statuses.map((status, at) => ({
      node_id: `s${at}`,
      status,
      prompt: "a long text",
      outputs: { at },
    })),
  }) as unknown as Whole;

/** The state of a page after the diffs of these states, and the indices of the last diff. */
function applyAll(states: Whole[]): { shown: RunState; changed: number[] } {
  const changes = new StateDiff();
  let shown: RunState = { node_results: [] } as unknown as RunState;
  const changed: number[] = [];
  for (const state of states) {
    const { parts, rest } = changes.diff(state);
    const all = parts.flatMap((part) => part.nodes);
    changed.push(all.length);
    shown = applyDiff(shown.node_results, all, rest);
  }
  return { shown, changed };
}

test("only changed steps are sent", () => {
  const { shown, changed } = applyAll([
    whole(["queued", "queued"]),
    whole(["queued", "running"]),
    whole(["queued", "running"]),
  ]);
  expect(changed).toEqual([2, 1, 0]);
  expect(shown.node_results.map((node) => node.status)).toEqual(["queued", "running"]);
});

test("unchanged steps stay the same objects", () => {
  const changes = new StateDiff();
  const first = changes.diff(whole(["queued", "queued"]));
  const one = applyDiff(
    [],
    first.parts.flatMap((part) => part.nodes),
    first.rest,
  );
  const second = changes.diff(whole(["queued", "running"]));
  const two = applyDiff(
    one.node_results,
    second.parts.flatMap((part) => part.nodes),
    second.rest,
  );
  expect(two.node_results[0]).toBe(one.node_results[0]);
  expect(two.node_results[1]).not.toBe(one.node_results[1]);
});

test("removed and added steps are applied", () => {
  const { shown } = applyAll([whole(["a", "b", "c"]), whole(["a"]), whole(["a", "b"])]);
  expect(shown.node_results.map((node) => node.status)).toEqual(["a", "b"]);
});

test("large fields are left out, and many steps are split into parts", () => {
  const { parts, rest } = new StateDiff().diff(
    whole(Array.from({ length: 1_000 }, () => "queued")),
  );
  expect(parts.length).toBeGreaterThan(1);
  expect(rest.count).toBe(1_000);
  expect(Object.keys(parts[0]?.nodes[0]?.[1] as Node)).toEqual(["node_id", "status"]);
});

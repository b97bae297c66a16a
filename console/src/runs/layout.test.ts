import { expect, test } from "vitest";
import { DAGRE_MAX, HEIGHT, positionsOf, type Step, WIDTH, wavePositions } from "./layout";

/** A graph with this many waves; each step depends on two steps of the previous wave. */
function graph(waves: number, wide: number): Step[] {
  const id = (wave: number, at: number) => `s${wave}_${at % wide}`;
  return Array.from({ length: waves * wide }, (_, n) => {
    const [wave, at] = [Math.floor(n / wide), n % wide];
    const depends_on = wave === 0 ? [] : [id(wave - 1, at), id(wave - 1, at + 1)];
    return { node_id: id(wave, at), wave, depends_on };
  });
}

function check(steps: Step[]) {
  const positions = positionsOf(steps);
  const all = steps.map((step) => {
    const position = positions[step.node_id];
    if (!position) throw new Error(`${step.node_id} has no position`);
    return position;
  });
  expect(Object.keys(positions).length).toBe(steps.length);
  const behind = steps.filter((step) =>
    step.depends_on.some(
      (before) => (positions[before]?.x ?? 0) + WIDTH >= (positions[step.node_id]?.x ?? 0),
    ),
  );
  expect(behind).toEqual([]);
  const apart = (one: { x: number; y: number }, other: { x: number; y: number }) =>
    Math.abs(one.x - other.x) >= WIDTH || Math.abs(one.y - other.y) >= HEIGHT;
  const covered = all.filter((one, at) =>
    all.some((other, index) => index < at && !apart(one, other)),
  );
  expect(covered).toEqual([]);
}

test("steps come after their dependencies and do not overlap", () => {
  check([{ node_id: "alone", wave: 0, depends_on: [] }]);
  check(graph(5, 6));
  check(graph(12, 30));
  check(graph(3, 400));
});

test("dependencies on unknown steps are ignored", () => {
  expect(positionsOf([])).toEqual({});
  expect(Object.keys(positionsOf([{ node_id: "a", wave: 1, depends_on: ["elsewhere"] }]))).toEqual([
    "a",
  ]);
});

test("the layout of five times as many steps takes at most seven times as long", () => {
  const time = (steps: Step[]) => {
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 7; round += 1) {
      const began = performance.now();
      wavePositions(steps);
      best = Math.min(best, performance.now() - began);
    }
    return best;
  };
  const [some, many] = [graph(50, 20), graph(250, 20)];
  expect(some.length).toBeGreaterThan(DAGRE_MAX);
  time(many);
  expect(time(many)).toBeLessThan(7 * time(some) + 2);
});

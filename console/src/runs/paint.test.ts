import { expect, test } from "vitest";
import { computeLayout, HEIGHT, type Step, WIDTH } from "./layout";
import { extent, type Look, overview, sight, stepAt, within } from "./paint";

const steps: Step[] = Array.from({ length: 900 }, (_, at) => ({
  node_id: `s${at}`,
  wave: Math.floor(at / 30),
  depends_on: at < 30 ? [] : [`s${at - 30}`, "elsewhere"],
}));
const places = computeLayout(steps);

test("edges connect existing steps", () => {
  expect(places.from.length).toBe(870);
  expect(places.to[0]).toBe(30);
  expect(places.from[0]).toBe(0);
});

test("every step is found at its position, and none outside the graph", () => {
  for (const at of [0, 450, 899]) {
    expect(
      stepAt(places, (places.xs[at] ?? 0) + WIDTH / 2, (places.ys[at] ?? 0) + HEIGHT / 2),
    ).toBe(at);
  }
  expect(stepAt(places, -10_000, 0)).toBe(-1);
});

test("only visible steps are returned, and at most the limit", () => {
  const at = 450;
  const look: Look = {
    zoom: 1,
    width: 600,
    height: 400,
    x: 300 - (places.xs[at] ?? 0),
    y: 200 - (places.ys[at] ?? 0),
  };
  const seen = within(places, sight(look, 0), 1_000);
  expect(seen).toContain(at);
  expect(seen.length).toBeLessThan(40);
  expect(within(places, sight(look, 0), 3).length).toBe(3);
});

test("the minimap contains every step", () => {
  const map = overview(extent(places), 200, 130);
  expect(within(places, sight(map, 0), 1_000).length).toBe(900);
  for (const at of [0, 899]) {
    const x = (places.xs[at] ?? 0) * map.zoom + map.x;
    expect(x).toBeGreaterThanOrEqual(-0.01);
    expect(x).toBeLessThanOrEqual(200);
  }
});

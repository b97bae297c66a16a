import { expect, test } from "vitest";
import { costDimension, exhaustedAtMs, periodSpan, points } from "./burn-down";
import type { Budget } from "./registry";

const NOW = Date.parse("2026-11-18T12:00:00Z"); // A Wednesday.
const DAY = 86_400_000;
const budget = (more: Partial<Budget> = {}): Budget => ({
  id: "all",
  scope: "global",
  period: "monthly",
  amount_cents: 10_000,
  spent: "30",
  reserved: "0",
  left: "70",
  overrun: "0",
  closed: false,
  ...more,
});
const day = (at: string, cost: number, agent?: string) => ({
  start: `2026-11-${at}T00:00:00Z`,
  cost,
  ...(agent ? { agent } : {}),
});

test("periods start at midnight, on Sunday and on the first, in UTC", () => {
  const begin = (period: Budget["period"]) =>
    new Date(periodSpan(period, NOW).fromMs).toISOString().slice(0, 10);
  expect(begin("daily")).toBe("2026-11-18");
  expect(begin("weekly")).toBe("2026-11-15");
  expect(begin("monthly")).toBe("2026-11-01");
  const december = periodSpan("monthly", Date.parse("2026-12-31T23:59:59Z"));
  expect(new Date(december.toMs).toISOString().slice(0, 10)).toBe("2027-01-01");
});

test("the line goes from the cap to the amount left now", () => {
  const line = points(budget(), [day("02", 10), day("05", 20)], DAY, NOW);
  expect(line.map((one) => one.left)).toEqual([100, 100, 90, 90, 70, 70]);
  expect(line[0]?.atMs).toBe(Date.parse("2026-11-01T00:00:00Z"));
  expect(line.at(-1)).toEqual({ atMs: NOW, left: 70 });
});

test("unrecorded spending comes first, and the line ends now", () => {
  const line = points(budget(), [day("18", 5)], DAY, NOW);
  expect(line.map((one) => one.left)).toEqual([75, 75, 70, 70]);
  expect(Math.max(...line.map((one) => one.atMs))).toBe(NOW);
});

test("a budget created within its period ignores earlier costs", () => {
  const young = budget({ spent: "5", left: "95" });
  const line = points(young, [day("02", 50), day("17", 5)], DAY, NOW);
  expect(line.map((one) => one.left)).toEqual([100, 100, 100, 100, 95, 95]);
  expect(line.every((one, at) => at === 0 || one.atMs >= (line[at - 1]?.atMs ?? 0))).toBe(true);
});

test("a budget of an agent includes only costs of that agent", () => {
  const own = budget({ scope: "agent", of: "ada", spent: "10", left: "90" });
  expect(
    points(own, [day("02", 10, "ada"), day("03", 99, "bob")], DAY, NOW).map((one) => one.left),
  ).toEqual([100, 100, 90, 90]);
  expect(costDimension(own)).toBe("agent");
  expect(costDimension(budget({ scope: "gateway", of: "eu" }))).toBeNull();
  expect(costDimension(budget({ scope: "run", of: "run_1" }))).toBeNull();
  expect(costDimension(budget())).toBe("");
});

test("a budget that lasts through its period has no exhaustion time", () => {
  expect(exhaustedAtMs(budget(), NOW)).toBeNull();
  const fast = exhaustedAtMs(budget({ spent: "80" }), NOW);
  expect(new Date(fast ?? 0).toISOString().slice(0, 10)).toBe("2026-11-22");
  expect(exhaustedAtMs(budget({ spent: "0" }), NOW)).toBeNull();
  expect(exhaustedAtMs(budget({ spent: "100" }), NOW)).toBeNull();
});

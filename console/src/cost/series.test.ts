import { expect, test } from "vitest";
import { type Cost, OTHERS, seriesOf, starts, totals, values } from "./series";

const row = (day: number, agent: string, cost: number): Cost => ({
  start: `2026-11-${String(day).padStart(2, "0")}T00:00:00.000Z`,
  agent,
  cost,
  input_tokens: 10,
  output_tokens: 1,
  steps: 1,
});
const ROWS = [
  row(1, "ada", 3),
  row(1, "bob", 1),
  row(2, "ada", 2),
  row(3, "cy", 0.5),
  row(3, "", 0.25),
];

test("totals are sorted by cost, highest first", () => {
  expect(totals(ROWS, "agent").map((one) => [one.name, one.cost, one.steps])).toEqual([
    ["ada", 5, 2],
    ["bob", 1, 1],
    ["cy", 0.5, 1],
    ["unknown", 0.25, 1],
  ]);
});

test("names without a series are combined, and no cost is lost", () => {
  const names = seriesOf(totals(ROWS, "agent"), 3);
  expect(names).toEqual(["ada", "bob", OTHERS]);
  const buckets = starts(
    "day",
    Date.parse("2026-11-01T09:00:00Z"),
    Date.parse("2026-11-03T10:00:00Z"),
  );
  const table = values(ROWS, "agent", names, buckets);
  expect(table).toEqual([
    [3, 1, 0],
    [2, 0, 0],
    [0, 0, 0.75],
  ]);
  expect(table.flat().reduce((sum, one) => sum + one, 0)).toBe(6.75);
});

test("buckets start on the hour, at midnight, on Sunday, on the first", () => {
  const at = Date.parse("2026-11-18T12:34:56Z");
  const first = (bucket: "hour" | "day" | "week" | "month") =>
    new Date(starts(bucket, at, at)[0] ?? 0).toISOString();
  expect(first("hour")).toBe("2026-11-18T12:00:00.000Z");
  expect(first("day")).toBe("2026-11-18T00:00:00.000Z");
  expect(first("week")).toBe("2026-11-15T00:00:00.000Z");
  expect(first("month")).toBe("2026-11-01T00:00:00.000Z");
  expect(
    starts("month", Date.parse("2026-01-31T00:00:00Z"), Date.parse("2026-04-02T00:00:00Z")),
  ).toHaveLength(4);
});

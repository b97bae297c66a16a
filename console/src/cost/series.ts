// Costs as they are drawn: one bar a bucket, one series a name, the small ones together.
import type { Schemas } from "../api/client";

export type Cost = Schemas["CostShown"];
export type By = "workflow" | "agent" | "model";
export type Bucket = "hour" | "day" | "week" | "month";

export interface Total {
  name: string;
  cost: number;
  input: number;
  output: number;
  steps: number;
}

/** What stands for everything that has no series of its own. */
export const OTHERS = "all others";
const UNKNOWN = "not said";

const nameOf = (row: Cost, by: By): string => row[by] || UNKNOWN;

/** Sums by name, the dearest first. */
export function totals(rows: readonly Cost[], by: By): Total[] {
  const all = new Map<string, Total>();
  for (const row of rows) {
    const name = nameOf(row, by);
    const total = all.get(name) ?? { name, cost: 0, input: 0, output: 0, steps: 0 };
    total.cost += Number(row.cost);
    total.input += row.input_tokens;
    total.output += row.output_tokens;
    total.steps += row.steps;
    all.set(name, total);
  }
  return [...all.values()].sort(
    (one, other) => other.cost - one.cost || one.name.localeCompare(other.name),
  );
}

/** The names that have a series, the last for all others where there are more. */
export function seriesOf(sums: readonly Total[], most: number): string[] {
  const names = sums.map((one) => one.name);
  return names.length <= most ? names : [...names.slice(0, most - 1), OTHERS];
}

/** The beginnings of all buckets of a time, also of those in which nothing cost anything. */
export function starts(bucket: Bucket, fromMs: number, toMs: number): number[] {
  const from = new Date(fromMs);
  const day = Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), from.getUTCDate());
  const begin = {
    hour: Math.floor(fromMs / 3_600_000) * 3_600_000,
    day,
    week: day - from.getUTCDay() * 86_400_000,
    month: Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), 1),
  }[bucket];
  const all = [];
  for (let at = begin; at <= toMs && all.length < 1_000; ) {
    all.push(at);
    const now = new Date(at);
    at =
      bucket === "month"
        ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
        : at + { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 }[bucket];
  }
  return all;
}

/** One row of values a bucket, in the order of the series. */
export function values(
  rows: readonly Cost[],
  by: By,
  names: readonly string[],
  buckets: readonly number[],
): number[][] {
  const table = buckets.map(() => names.map(() => 0));
  const placeOf = new Map(buckets.map((at, place) => [at, place]));
  for (const row of rows) {
    const line = table[placeOf.get(Date.parse(row.start)) ?? -1];
    const found = names.indexOf(nameOf(row, by));
    const place = found >= 0 ? found : names.indexOf(OTHERS);
    if (line && place >= 0) line[place] = (line[place] ?? 0) + Number(row.cost);
  }
  return table;
}

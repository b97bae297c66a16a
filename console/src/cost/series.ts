// Chart data of costs: one bar per bucket, one series per name, small ones combined.
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

/** Name of the series that combines all remaining names. */
export const OTHERS = "all others";
const UNKNOWN = "unknown";

const nameOf = (row: Cost, by: By): string => row[by] || UNKNOWN;

/** Totals by name, highest cost first. */
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

/** Names of the series; the last one combines the rest if there are more than `most`. */
export function seriesOf(sums: readonly Total[], most: number): string[] {
  const names = sums.map((one) => one.name);
  return names.length <= most ? names : [...names.slice(0, most - 1), OTHERS];
}

/** Start times of all buckets in a time range, including empty ones. */
export function starts(bucket: Bucket, fromMs: number, toMs: number): number[] {
  const from = new Date(fromMs);
  const day = Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), from.getUTCDate());
  const begin = {
    hour: Math.floor(fromMs / 3_600_000) * 3_600_000,
    day,
    week: day - from.getUTCDay() * 86_400_000,
    month: Date.UTC(from.getUTCFullYear(), from.getUTCMonth(), 1),
  }[bucket];
  const all: number[] = [];
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

/** One row of values per bucket, in the order of the series. */
export function values(
  rows: readonly Cost[],
  by: By,
  names: readonly string[],
  buckets: readonly number[],
): number[][] {
  const table = buckets.map(() => names.map(() => 0));
  const indexOfBucket = new Map(buckets.map((at, index) => [at, index]));
  for (const row of rows) {
    const line = table[indexOfBucket.get(Date.parse(row.start)) ?? -1];
    const found = names.indexOf(nameOf(row, by));
    const index = found >= 0 ? found : names.indexOf(OTHERS);
    if (line && index >= 0) line[index] = (line[index] ?? 0) + Number(row.cost);
  }
  return table;
}

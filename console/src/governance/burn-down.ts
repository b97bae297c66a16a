// The burn-down of a budget: its period, and how much was left at each moment.
import type { Schemas } from "../api/client";
import type { Budget } from "./registry";

type Cost = Pick<Schemas["CostShown"], "start" | "cost" | "agent" | "workflow">;

export interface Span {
  fromMs: number;
  /** When the budget resets; now for a budget that never does. */
  toMs: number;
}

const DAY_MS = 86_400_000;
/** Days shown of a budget that never resets. */
const TOTAL_DAYS = 30;

/** The period that contains a moment. Periods start at midnight UTC, on Sundays or on the first of a month. */
export function periodSpan(period: Budget["period"], nowMs: number): Span {
  const now = new Date(nowMs);
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate());
  switch (period) {
    case "daily":
      return { fromMs: midnight, toMs: midnight + DAY_MS };
    case "weekly": {
      const fromMs = midnight - now.getUTCDay() * DAY_MS;
      return { fromMs, toMs: fromMs + 7 * DAY_MS };
    }
    case "monthly":
      return {
        fromMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1),
        toMs: Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1),
      };
    case "total":
      return { fromMs: midnight - TOTAL_DAYS * DAY_MS, toMs: nowMs };
  }
}

/** The dimension to group costs by for this budget; null when costs are not recorded by it. */
export function costDimension(
  budget: Pick<Budget, "scope" | "of">,
): "" | "agent" | "workflow" | null {
  if (budget.scope === "global" || budget.of === undefined)
    return budget.scope === "run" ? null : "";
  return budget.scope === "agent" || budget.scope === "workflow" ? budget.scope : null;
}

export interface Point {
  atMs: number;
  left: number;
}

/** How much was left at each moment, ending now. */
export function points(
  budget: Budget,
  costs: readonly Cost[],
  bucketMs: number,
  nowMs: number,
): Point[] {
  const { fromMs } = periodSpan(budget.period, nowMs);
  const cap = budget.amount_cents / 100;
  const spent = Number(budget.spent);
  const by = costDimension(budget);
  const steps = new Map<number, number>();
  for (const one of costs) {
    const atMs = Date.parse(one.start);
    if ((by && one[by] !== budget.of) || atMs + bucketMs <= fromMs) continue;
    steps.set(atMs, (steps.get(atMs) ?? 0) + Number(one.cost));
  }
  // Computed backwards from the budget's own figures, which are authoritative: a budget created
  // within its period did not count what was spent before.
  const line: Point[] = [{ atMs: nowMs, left: cap - spent }];
  let used = spent;
  for (const [atMs, cost] of [...steps].sort(([one], [other]) => other - one)) {
    // Costs are known per hour or day only: draw them as spent evenly within it.
    line.push({ atMs: Math.min(nowMs, atMs + bucketMs), left: cap - used });
    used = Math.max(0, used - cost);
    line.push({ atMs: Math.max(fromMs, atMs), left: cap - used });
  }
  line.push({ atMs: fromMs, left: cap - used });
  return line.reverse();
}

/** When the budget is exhausted at the current rate; null if that is after the period. */
export function exhaustedAtMs(budget: Budget, nowMs: number): number | null {
  if (budget.period === "total") return null;
  const { fromMs, toMs } = periodSpan(budget.period, nowMs);
  const [cap, spent] = [budget.amount_cents / 100, Number(budget.spent)];
  if (spent <= 0 || spent >= cap) return null;
  const atMs = fromMs + ((nowMs - fromMs) * cap) / spent;
  return atMs < toMs ? atMs : null;
}

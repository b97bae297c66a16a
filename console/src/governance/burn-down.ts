// How a budget was used up: its period, and what was left at each moment of it.
import type { Schemas } from "../api/client";
import type { Budget } from "./registry";

type Cost = Pick<Schemas["CostShown"], "start" | "cost" | "agent" | "workflow">;

export interface Span {
  fromMs: number;
  /** When it starts anew; for one that never does, now. */
  toMs: number;
}

const DAY_MS = 86_400_000;
/** How far back one looks that never starts anew. */
const TOTAL_DAYS = 30;

/** The period that a moment is in: UTC midnights, Sundays, firsts of the month. */
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

/** By what the costs of a budget are told apart; null where costs do not tell. */
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

/** What was left at each moment, ending with what is left now. */
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
  // From now backwards, since the figures of the budget have the last word: one that is younger than
  // its period did not count what came before it.
  const line: Point[] = [{ atMs: nowMs, left: cap - spent }];
  let used = spent;
  for (const [atMs, cost] of [...steps].sort(([one], [other]) => other - one)) {
    // When within its hour or day something was spent is not known: it is drawn as spent evenly.
    line.push({ atMs: Math.min(nowMs, atMs + bucketMs), left: cap - used });
    used = Math.max(0, used - cost);
    line.push({ atMs: Math.max(fromMs, atMs), left: cap - used });
  }
  line.push({ atMs: fromMs, left: cap - used });
  return line.reverse();
}

/** When nothing is left, if it goes on as it went; null if that is after the period. */
export function exhaustedAtMs(budget: Budget, nowMs: number): number | null {
  if (budget.period === "total") return null;
  const { fromMs, toMs } = periodSpan(budget.period, nowMs);
  const [cap, spent] = [budget.amount_cents / 100, Number(budget.spent)];
  if (spent <= 0 || spent >= cap) return null;
  const atMs = fromMs + ((nowMs - fromMs) * cap) / spent;
  return atMs < toMs ? atMs : null;
}

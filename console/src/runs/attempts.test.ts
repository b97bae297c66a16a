import { expect, test } from "vitest";
import type { Event } from "../api/follow";
import { attemptsOf } from "./attempts";

let last = 0;
function event(type: string, at: string, payload: Record<string, unknown> = {}): Event {
  last += 1;
  return { eventId: last, type, timestamp: `2026-01-01T00:00:${at}Z`, payload } as unknown as Event;
}

test("each start is paired with its end", () => {
  const all = attemptsOf([
    event("node.started", "01", { attempt: 1, gateway: "demo" }),
    event("node.retried", "02", { attempt: 1, cause: "overloaded" }),
    event("node.started", "05", { attempt: 2, gateway: "other" }),
    event("node.completed", "06.5", { inputTokens: 3, outputTokens: 4, cost: 0.5 }),
    event("node.started", "08", { attempt: 1, gateway: "demo" }),
  ]);
  expect(
    all.map(({ number, gateway, end, why, tookMs }) => [number, gateway, end, why, tookMs]),
  ).toEqual([
    [1, "demo", "failed", "overloaded", 1_000],
    [2, "other", "completed", null, 1_500],
    [1, "demo", null, null, null],
  ]);
  expect([all[1]?.tokens, all[1]?.cost]).toEqual([7, 0.5]);
});

test("an end without a start is ignored", () => {
  expect(attemptsOf([event("node.cancelled", "01")])).toEqual([]);
});

test("a failed attempt shows its answer", () => {
  const all = attemptsOf([
    event("node.started", "01", { attempt: 1 }),
    event("node.retried", "02", {
      attempt: 1,
      cause: "contract_violated",
      answer: { text: "maybe" },
    }),
    event("node.started", "03", { attempt: 2 }),
    event("node.skipped", "04", {
      errorCode: "output_validation_failed",
      errorMessage: "no",
      answer: { text: "no" },
    }),
  ]);
  expect(all.map(({ end, answer }) => [end, answer])).toEqual([
    ["failed", { text: "maybe" }],
    ["failed", { text: "no" }],
  ]);
});

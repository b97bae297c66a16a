import { expect, test, vi } from "vitest";
import type { Event } from "../api/follow";
import { Feed, KEPT_MAX } from "./feed";

function event(
  eventId: number,
  type: string,
  payload: Record<string, unknown> = { nodeId: "a" },
): Event {
  const at = "2026-01-01T00:00:00Z";
  return {
    eventId,
    sequence: eventId,
    type,
    runId: "run_1",
    workflowId: "w",
    timestamp: at,
    correlation: {},
    payload,
  } as Event;
}

const state = (status: string) =>
  ({ status: "running", node_results: [{ node_id: "a", status }] }) as never;
const shown = (feed: Feed, status: string) => feed.overlay(state(status)).node_results[0]?.status;

test("repeated events are kept once", () => {
  const feed = new Feed();
  feed.push([event(1, "node.queued"), event(2, "node.started")]);
  feed.push([event(2, "node.started"), event(3, "node.completed")]);
  expect(feed.events.map((one) => one.eventId)).toEqual([1, 2, 3]);
  expect(feed.last).toBe(3);
});

test("a state drops the updates before its request, and only those", () => {
  const feed = new Feed();
  feed.push([event(1, "node.queued"), event(2, "node.started")]);
  expect(shown(feed, "pending")).toBe("running");
  feed.dropUpdatesUntil(1);
  expect(shown(feed, "queued")).toBe("running");
  feed.dropUpdatesUntil(2);
  expect(shown(feed, "streaming")).toBe("streaming");
});

const delta = (id: number, dispatchNo: number, text: string, more: Record<string, unknown> = {}) =>
  event(id, "node.stream.delta", { nodeId: "a", attempt: 1, dispatchNo, text, ...more });

test("text starts over with each dispatch, even of the same attempt after a crash", () => {
  const feed = new Feed();
  feed.push([
    delta(1, 1, "The quick "),
    event(2, "run.status.changed", {}),
    delta(3, 2, "The quick "),
    delta(4, 2, "fox"),
  ]);
  expect(feed.streamed.get("a")).toEqual({ dispatch: 2, text: "The quick fox", cut: false });
  feed.push([delta(5, 3, "again", { attempt: 2 })]);
  expect(feed.streamed.get("a")).toEqual({ dispatch: 3, text: "again", cut: false });
});

test("deltas without a dispatch number are separated by attempt", () => {
  const feed = new Feed();
  const old = (id: number, attempt: number, text: string) =>
    event(id, "node.stream.delta", { nodeId: "a", attempt, text });
  feed.push([old(1, 1, "one "), old(2, 1, "two")]);
  expect(feed.streamed.get("a")?.text).toBe("one two");
  feed.push([old(3, 2, "again")]);
  expect(feed.streamed.get("a")?.text).toBe("again");
});

test("a page that opens late knows that text is missing", () => {
  const feed = new Feed();
  feed.push([delta(7, 1, "end", { deltaIndex: 3 })]);
  feed.push([delta(8, 1, ".", { deltaIndex: 4 })]);
  expect(feed.streamed.get("a")).toEqual({ dispatch: 1, text: "end.", cut: true });
});

test("only the newest events are kept", () => {
  const feed = new Feed();
  feed.push(Array.from({ length: KEPT_MAX + 10 }, (_, at) => event(at + 1, "node.log")));
  expect(feed.events.length).toBe(KEPT_MAX);
  expect(feed.events[0]?.eventId).toBe(11);
  feed.prepend([event(9, "node.log"), event(10, "node.log"), event(11, "node.log")]);
  expect(feed.events.slice(0, 3).map((one) => one.eventId)).toEqual([9, 10, 11]);
});

test("many events cause few reloads, and one after the last event", async () => {
  vi.useFakeTimers();
  const feed = new Feed();
  let reloads = 0;
  feed.onStale(() => {
    reloads += 1;
    return Promise.resolve();
  });
  for (let id = 1; id <= 200; id += 1) {
    feed.push([event(id, "node.started")]);
    await vi.advanceTimersByTimeAsync(10);
  }
  const during = reloads;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(during).toBeLessThanOrEqual(4);
  expect(reloads).toBe(during + 1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(reloads).toBe(during + 1);
  vi.useRealTimers();
});

test("counters and times follow the events until a state arrives", () => {
  const feed = new Feed();
  const before = {
    status: "running",
    pending_count: 1,
    waiting_count: 0,
    in_flight_count: 0,
    executed_count: 0,
    failed_count: 0,
    node_results: [{ node_id: "a", status: "pending", started_at: null, duration_ms: null }],
  } as never;
  feed.push([event(1, "node.started")]);
  expect(feed.overlay(before)).toMatchObject({ pending_count: 0, in_flight_count: 1 });
  feed.push([event(2, "node.completed", { nodeId: "a", durationMs: 40 })]);
  const after = feed.overlay(before);
  expect(after).toMatchObject({ pending_count: 0, in_flight_count: 0, executed_count: 1 });
  expect(after.node_results[0]).toMatchObject({
    started_at: "2026-01-01T00:00:00Z",
    duration_ms: 40,
  });
  feed.dropUpdatesUntil(2);
  expect(feed.overlay(before)).toBe(before);
});

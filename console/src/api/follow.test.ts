import { afterEach, expect, test, vi } from "vitest";
import { type Event, follow } from "./follow";

afterEach(() => vi.unstubAllGlobals());

const BEAT =
  'event: heartbeat\ndata: {"type":"heartbeat","runId":"run_1","timestamp":"2026-01-01T00:00:00.000Z"}\n\n';
const frame = (id: number, type: string) =>
  `id: ${id}\nevent: ${type}\ndata: {"eventId":${id},"type":"${type}"}\n\n`;

test("a heartbeat is not delivered and does not move the cursor", async () => {
  const cursors: (string | null)[] = [];
  const bodies = [frame(1, "run.started") + BEAT, BEAT + frame(2, "run.completed") + BEAT];
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("removeEventListener", () => undefined);
  vi.stubGlobal("fetch", (_: string, { headers }: { headers: Record<string, string> }) => {
    cursors.push(headers["last-event-id"] ?? null);
    return Promise.resolve(new Response(bodies.shift()));
  });
  const received: Event[] = [];
  await new Promise<void>((resolve) => {
    follow({
      url: "/api/v1/runs/run_1/events",
      after: null,
      onEvents: (events) => received.push(...events),
      onConnection: (link) => link === "over" && resolve(),
      isLast: (event) => event.type === "run.completed",
    });
  });
  expect(received.map((event) => event.eventId)).toEqual([1, 2]);
  expect(cursors).toEqual([null, "1"]);
});

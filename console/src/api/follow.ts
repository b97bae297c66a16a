// Follows an event stream, and resumes after the last event when the connection is lost.
//
// INVARIANT: every event is delivered exactly once, because each connection starts after the last
// delivered id. A stream that is silent for longer than the heartbeat interval is closed.

import { notifySignedOut, type Problem, readProblem, type Schemas } from "./client";
import { type Frame, Frames } from "./sse";

type Payloads = Required<Schemas["EventPayloads"]>;
/** The type of a journal event. */
export type EventType = keyof Payloads;
/** The name of a payload field of any event. */
export type PayloadField = { [T in EventType]: keyof Payloads[T] }[EventType];

/** A journal event. The fields of its payload depend on its type. */
export type Event = Omit<Schemas["Event"], "payload" | "type"> & {
  type: EventType;
  payload: { [F in PayloadField]?: unknown };
};

/** State of a stream. `gone`: the server does not respond; the client retries. */
export type ConnectionState = "connecting" | "live" | "gone" | "over" | "refused";

export interface FollowOptions {
  url: string;
  /** Id of the last known event; null starts at the stream's default position. */
  after: string | null;
  /** Receives events in order, in batches as they arrive. */
  onEvents: (events: Event[]) => void;
  onConnection: (state: ConnectionState) => void;
  /** Whether the stream is complete when the server closes it after this event. */
  isLast: (event: Event) => boolean;
}

/** How far a stream was read, across reconnects. */
interface StreamPosition {
  after: string | null;
  last: Event | null;
  failures: number;
}

/** Longest silence of a working stream: the server sends a heartbeat every 15 s. */
const SILENCE_MAX_MS = 40_000;
const BACKOFF_MS = [300, 700, 1_500, 3_000, 5_000];

/** Follows until the stream is complete or the returned function is called. */
export function follow(options: FollowOptions): () => void {
  const stop = new AbortController();
  const position: StreamPosition = { after: options.after, last: null, failures: 0 };
  void (async () => {
    options.onConnection("connecting");
    while (!stop.signal.aborted) {
      const end = await readConnection(options, position, stop.signal);
      if (stop.signal.aborted) return;
      if (end === "over" || end === "refused") return options.onConnection(end);
      if (end === "gone") options.onConnection("gone");
      const wait = BACKOFF_MS[Math.min(position.failures, BACKOFF_MS.length - 1)] ?? 5_000;
      position.failures += 1;
      await sleep(wait * (0.8 + Math.random() * 0.4), stop.signal);
    }
  })();
  return () => stop.abort();
}

/** Reads one connection. `ended`: the server closed it; reconnect. */
async function readConnection(
  options: FollowOptions,
  position: StreamPosition,
  stop: AbortSignal,
): Promise<"over" | "refused" | "gone" | "ended"> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
  const signal = AbortSignal.any([stop, silence.signal]);
  try {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (position.after !== null) headers["last-event-id"] = position.after;
    const response = await fetch(options.url, {
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal,
    });
    if (!response.ok || !response.body) return await afterRefusal(response);
    options.onConnection("live");
    const frames = new Frames();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return position.last && options.isLast(position.last) ? "over" : "ended";
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MAX_MS);
      deliver(frames.push(value), options, position);
    }
  } catch {
    return "gone";
  } finally {
    clearTimeout(timer);
  }
}

/** Delivers the events of some frames and moves the position past them. */
function deliver(frames: readonly Frame[], options: FollowOptions, position: StreamPosition): void {
  const events: Event[] = [];
  for (const frame of frames) {
    // A heartbeat has no id and belongs to no run.
    if (frame.event === "heartbeat") continue;
    events.push(JSON.parse(frame.data) as Event);
    if (frame.id !== null) position.after = frame.id;
  }
  if (events.length === 0) return;
  position.last = events.at(-1) ?? null;
  position.failures = 0;
  options.onEvents(events);
}

/** Decides whether to retry: a server that is starting or overloaded may accept the stream later. */
async function afterRefusal(response: Response): Promise<"refused" | "gone"> {
  const problem: Problem = await readProblem(response);
  if (problem.status === 401) notifySignedOut();
  return problem.status >= 500 || problem.status === 429 ? "gone" : "refused";
}

function sleep(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    addEventListener("online", done, { once: true });
    stop.addEventListener("abort", done, { once: true });
  });
}

// Follows a stream of the server, and goes on after the last event it saw when the server was gone.
//
// What must hold: no event is told twice, none is left out: each connection begins after the last id
// that was told. A stream that says nothing for longer than its heartbeats is taken to be dead.

import type { Schemas } from "./client";
import { notifySignedOut, Problem, readProblem } from "./client";
import { Frames } from "./sse";

/** An event of a journal; what its payload holds depends on its type. */
export type Event = Omit<Schemas["Event"], "payload"> & { payload: Record<string, unknown> };

/** How a stream is. `gone`: the server does not answer, and is tried again. */
export type Link = "connecting" | "live" | "gone" | "over" | "refused";

export interface Following {
  url: string;
  /** The last event that is known; null is the stream's own beginning. */
  after: string | null;
  /** Events in their order, as many as came at once. */
  onEvents: (events: Event[]) => void;
  onLink: (link: Link) => void;
  /** Whether a stream that the server ends after this event is over. */
  isLast: (event: Event) => boolean;
}

/** How far a stream was read, over all its connections. */
interface Seen {
  after: string | null;
  last: Event | null;
  failures: number;
}

/** Silence that no living stream keeps: the server says something every 15 s. */
const SILENCE_MS = 40_000;
const WAITS_MS = [300, 700, 1_500, 3_000, 5_000];

/** Follows until the stream is over or the answered function is called. */
export function follow(wish: Following): () => void {
  const stop = new AbortController();
  const seen: Seen = { after: wish.after, last: null, failures: 0 };
  void (async () => {
    wish.onLink("connecting");
    while (!stop.signal.aborted) {
      const end = await once(wish, seen, stop.signal);
      if (stop.signal.aborted) return;
      if (end === "over" || end === "refused") return wish.onLink(end);
      if (end === "gone") wish.onLink("gone");
      const wait = WAITS_MS[Math.min(seen.failures, WAITS_MS.length - 1)] ?? 5_000;
      seen.failures += 1;
      await pause(wait * (0.8 + Math.random() * 0.4), stop.signal);
    }
  })();
  return () => stop.abort();
}

/** One connection. `ended`: the server closed it, and may be asked again. */
async function once(
  wish: Following,
  seen: Seen,
  stop: AbortSignal,
): Promise<"over" | "refused" | "gone" | "ended"> {
  const silence = new AbortController();
  let timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const signal = AbortSignal.any([stop, silence.signal]);
  try {
    const headers: Record<string, string> = { accept: "text/event-stream" };
    if (seen.after !== null) headers["last-event-id"] = seen.after;
    const answer = await fetch(wish.url, {
      headers,
      credentials: "same-origin",
      cache: "no-store",
      signal,
    });
    if (!answer.ok || !answer.body) return await refusal(answer);
    wish.onLink("live");
    const frames = new Frames();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return seen.last && wish.isLast(seen.last) ? "over" : "ended";
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
      const events: Event[] = [];
      for (const frame of frames.push(value)) {
        // A sign of life: it has no id, and is no event of any run.
        if (frame.event === "heartbeat") continue;
        events.push(JSON.parse(frame.data) as Event);
        if (frame.id !== null) seen.after = frame.id;
      }
      if (events.length === 0) continue;
      seen.last = events.at(-1) ?? null;
      seen.failures = 0;
      wish.onEvents(events);
    }
  } catch {
    return "gone";
  } finally {
    clearTimeout(timer);
  }
}

/** What to do when a stream is not given: servers that start or have no room are asked again. */
async function refusal(answer: Response): Promise<"refused" | "gone"> {
  const why: Problem = await readProblem(answer);
  if (why.status === 401) notifySignedOut();
  return why.status >= 500 || why.status === 429 ? "gone" : "refused";
}

function pause(ms: number, stop: AbortSignal): Promise<void> {
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

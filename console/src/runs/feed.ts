// What the stream of a run said, kept for the page: the newest events, statuses, text on its way.
import type { Event } from "../api/follow";
import type { Node, RunState } from "./state-diff";

/** Most events that a page keeps; earlier ones are in the journal. */
export const KEPT_MAX = 5_000;
/** Longest text of a step that is kept while it comes. */
export const TEXT_MAX = 64 * 1024;
/** How often the page is drawn anew, at most. */
const DRAW_MS = 100;
/** How often the state is asked for, at most; slower when answers take long. */
const RELOAD_INTERVAL_MS = 700;

const STATUS: Readonly<Record<string, string>> = {
  "node.queued": "queued",
  "node.started": "running",
  "node.stream.delta": "streaming",
  "node.retried": "retrying",
  "node.completed": "completed",
  "node.failed": "failed",
  "node.cancelled": "cancelled",
  "node.skipped": "skipped",
  "node.timed_out": "timed_out",
  "node.blocked": "blocked",
  "node.invalidated": "pending",
  "approval.requested": "awaiting_approval",
};

/** What is counted of a run's steps, and the statuses that count as it. */
const COUNTS = {
  pending_count: ["pending"],
  waiting_count: ["awaiting_dependency", "queued", "awaiting_approval"],
  in_flight_count: ["running", "streaming", "retrying"],
  executed_count: ["completed", "skipped"],
  failed_count: ["failed", "timed_out", "blocked", "invalidated", "cancelled"],
} as const;
type Count = keyof typeof COUNTS;
const COUNTED = new Map<string, Count>(
  Object.entries(COUNTS).flatMap(([count, statuses]) =>
    statuses.map((status) => [status, count as Count] as const),
  ),
);
/** What a status counts as. */
export const countOf = (status: string): Count | undefined => COUNTED.get(status);
const SETTLED = new Set(["completed", "failed", "timed_out", "cancelled"]);

interface StepUpdate {
  status: string;
  at: number;
  /** What the event says besides: when the step began, when it ended, what it took. */
  fields: Partial<
    Pick<
      Node,
      "started_at" | "completed_at" | "duration_ms" | "cost" | "input_tokens" | "output_tokens"
    >
  >;
}

/** What an event says of a step beside its status. */
function fieldsOf(event: Event, status: string): StepUpdate["fields"] {
  if (event.type === "node.started")
    return { started_at: event.timestamp, completed_at: null, duration_ms: null };
  if (!SETTLED.has(status)) return {};
  const fields: StepUpdate["fields"] = { completed_at: event.timestamp };
  const { durationMs, cost, inputTokens, outputTokens } = event.payload;
  if (typeof durationMs === "number") fields.duration_ms = durationMs;
  if (typeof cost === "number") fields.cost = cost;
  if (typeof inputTokens === "number") fields.input_tokens = inputTokens;
  if (typeof outputTokens === "number") fields.output_tokens = outputTokens;
  return fields;
}

/** What a step has said so far in a dispatch: an attempt that is sent again after a crash is another one. */
export interface StreamedText {
  dispatch: number;
  text: string;
  /** Whether more was said before what is kept. */
  cut: boolean;
}

/** A word of an event's payload. */
export function textField(event: Event, name: string): string | null {
  const value = event.payload[name];
  return typeof value === "string" ? value : null;
}

export class Feed {
  /** The newest events, oldest first. */
  events: Event[] = [];
  /** The last event's id; null before any. */
  last: number | null = null;
  readonly streamed = new Map<string, StreamedText>();
  /** The last event of each step. */
  readonly touched = new Map<string, number>();
  #updates = new Map<string, StepUpdate>();
  #version = 0;
  #listeners = new Set<() => void>();
  #reload: (() => Promise<unknown>) | null = null;
  #drawing: ReturnType<typeof setTimeout> | null = null;
  #reloading: ReturnType<typeof setTimeout> | "busy" | null = null;
  #stale = false;

  /** Takes events as they come. */
  push(events: readonly Event[]): void {
    const fresh = events.filter((event) => event.eventId > (this.last ?? 0));
    const newest = fresh.at(-1);
    if (!newest) return;
    for (const event of fresh) this.#apply(event);
    this.last = newest.eventId;
    const all = this.events.concat(fresh);
    this.events = all.length > KEPT_MAX ? all.slice(-KEPT_MAX) : all;
    this.#stale = true;
    this.#drawing ??= setTimeout(() => this.flush(), DRAW_MS);
  }

  #apply(event: Event): void {
    const node = textField(event, "nodeId");
    if (node === null) return;
    this.touched.set(node, event.eventId);
    const status = STATUS[event.type];
    if (status) {
      const fields = { ...this.#updates.get(node)?.fields, ...fieldsOf(event, status) };
      this.#updates.set(node, { status, at: event.eventId, fields });
    }
    if (event.type === "node.stream.delta") this.#appendText(node, event);
  }

  #appendText(node: string, event: Event): void {
    // Journals of early versions count attempts alone.
    const dispatch = Number(event.payload.dispatchNo ?? event.payload.attempt ?? 0);
    const previous = this.streamed.get(node);
    const kept = previous?.dispatch === dispatch ? previous : null;
    const text = (kept?.text ?? "") + (textField(event, "text") ?? "");
    // The first part that is heard of a step is its first one, or something came before it.
    const late = !previous && Number(event.payload.deltaIndex ?? 0) > 0;
    const cut = (kept?.cut ?? late) || text.length > TEXT_MAX;
    this.streamed.set(node, { dispatch, text: text.slice(-TEXT_MAX), cut });
  }

  /** Puts events of the past before those that are kept. */
  prepend(events: readonly Event[]): void {
    const first = this.events[0]?.eventId ?? Number.POSITIVE_INFINITY;
    this.events = events.filter((event) => event.eventId < first).concat(this.events);
    this.#draw();
  }

  /** A state came that was asked for when `at` was the last event. */
  dropUpdatesUntil(at: number | null): void {
    for (const [node, update] of this.#updates)
      if (update.at <= (at ?? 0)) this.#updates.delete(node);
  }

  /** The state with the updates since laid over it. */
  overlay(state: RunState): RunState {
    if (this.#updates.size === 0) return state;
    const counts: Record<Count, number> = {
      pending_count: state.pending_count,
      waiting_count: state.waiting_count,
      in_flight_count: state.in_flight_count,
      executed_count: state.executed_count,
      failed_count: state.failed_count,
    };
    const turn = (status: string, by: 1 | -1) => {
      const count = COUNTED.get(status);
      if (count) counts[count] += by;
    };
    const nodes = state.node_results.map((node) => {
      const update = this.#updates.get(node.node_id);
      if (!update || update.status === node.status) return node;
      turn(node.status, -1);
      turn(update.status, 1);
      // What it waited for is over with the status it had then.
      return {
        ...node,
        ...update.fields,
        status: update.status,
        waiting_reason: null,
        unblock_hint: null,
      };
    });
    return { ...state, ...counts, node_results: nodes };
  }

  /** Draws what came, and has the state looked up. */
  flush(): void {
    if (this.#drawing) clearTimeout(this.#drawing);
    this.#drawing = null;
    this.#draw();
    if (this.#reloading === null && this.#stale) void this.#reloadState();
  }

  async #reloadState(): Promise<void> {
    this.#reloading = "busy";
    this.#stale = false;
    const began = performance.now();
    await this.#reload?.().catch(() => undefined);
    const rest = Math.max(RELOAD_INTERVAL_MS, 4 * (performance.now() - began));
    this.#reloading = setTimeout(() => {
      this.#reloading = null;
      if (this.#stale) void this.#reloadState();
    }, rest);
  }

  #draw(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }

  /** How the state is looked up. */
  onStale(look: () => Promise<unknown>): () => void {
    this.#reload = look;
    return () => {
      this.#reload = null;
    };
  }

  version = (): number => this.#version;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
}

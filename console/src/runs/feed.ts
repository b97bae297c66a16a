// Events of a run as they arrive: the newest events, status updates, and streamed text.
import type { Event, EventType, PayloadField } from "../api/follow";
import type { Node, RunState } from "./state-diff";

/** Most events in memory; the journal has the earlier ones. */
export const KEPT_MAX = 5_000;
/** Longest streamed text of a step in memory. */
export const TEXT_MAX = 64 * 1024;
/** Shortest time between two renders. */
const DRAW_MS = 100;
/** Shortest time between two loads of the state; longer when responses are slow. */
const RELOAD_INTERVAL_MS = 700;

const STATUS: Readonly<Partial<Record<EventType, string>>> = {
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

/** The counters of a run and the step statuses that each includes. */
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
/** The counter of a status. */
export const countOf = (status: string): Count | undefined => COUNTED.get(status);
const SETTLED = new Set(["completed", "failed", "timed_out", "cancelled"]);

interface StepUpdate {
  status: string;
  at: number;
  /** Other fields that the event changes: times, cost, tokens. */
  fields: Partial<
    Pick<
      Node,
      "started_at" | "completed_at" | "duration_ms" | "cost" | "input_tokens" | "output_tokens"
    >
  >;
}

/** Fields that an event changes besides the status. */
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

/** Streamed text of one dispatch. An attempt that is dispatched again after a crash starts a new text. */
export interface StreamedText {
  dispatch: number;
  text: string;
  /** Whether the beginning of the text is missing. */
  cut: boolean;
}

/** A string field of an event's payload. */
export function textField(event: Event, name: PayloadField): string | null {
  const value = event.payload[name];
  return typeof value === "string" ? value : null;
}

export class Feed {
  /** The newest events, in order. */
  events: Event[] = [];
  /** Id of the last event; null before the first. */
  last: number | null = null;
  readonly streamed = new Map<string, StreamedText>();
  /** Id of the last event of each step. */
  readonly touched = new Map<string, number>();
  #updates = new Map<string, StepUpdate>();
  #version = 0;
  #listeners = new Set<() => void>();
  #reload: (() => Promise<unknown>) | null = null;
  #drawing: ReturnType<typeof setTimeout> | null = null;
  #reloading: ReturnType<typeof setTimeout> | "busy" | null = null;
  #stale = false;

  /** Adds new events. */
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
    // Journals of early versions have no dispatch number.
    const dispatch = Number(event.payload.dispatchNo ?? event.payload.attempt ?? 0);
    const previous = this.streamed.get(node);
    const kept = previous?.dispatch === dispatch ? previous : null;
    const text = (kept?.text ?? "") + (textField(event, "text") ?? "");
    // A first delta with an index above 0 means that earlier ones were missed.
    const late = !previous && Number(event.payload.deltaIndex ?? 0) > 0;
    const cut = (kept?.cut ?? late) || text.length > TEXT_MAX;
    this.streamed.set(node, { dispatch, text: text.slice(-TEXT_MAX), cut });
  }

  /** Adds earlier events from the journal. */
  prepend(events: readonly Event[]): void {
    const first = this.events[0]?.eventId ?? Number.POSITIVE_INFINITY;
    this.events = events.filter((event) => event.eventId < first).concat(this.events);
    this.#draw();
  }

  /** Drops the updates that a loaded state includes: it was requested when `at` was the last event. */
  dropUpdatesUntil(at: number | null): void {
    for (const [node, update] of this.#updates)
      if (update.at <= (at ?? 0)) this.#updates.delete(node);
  }

  /** The state with newer updates applied. */
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
      // The reason for waiting belongs to the old status.
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

  /** Renders, and reloads the state if it is stale. */
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

  /** Sets the function that reloads the state. */
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

// The attempts of a step: start, gateway, outcome and cost.
import type { Event, EventType, PayloadField } from "../api/follow";
import { clock, duration, money } from "../parts/format";
import { Badge } from "../parts/status";
import { isEmpty, Value, visible } from "../parts/value";
import { textField } from "./feed";

export interface Attempt {
  /** Id of the event that started it. */
  id: number;
  number: number;
  began: string;
  gateway: string | null;
  /** Its outcome; null while it runs. */
  end: string | null;
  why: string | null;
  /** The answer of a failed attempt. */
  answer: Record<string, unknown> | null;
  tookMs: number | null;
  tokens: number | null;
  cost: number | null;
}

const ENDS: Readonly<Partial<Record<EventType, string>>> = {
  "node.retried": "failed",
  "node.completed": "completed",
  "node.failed": "failed",
  "node.timed_out": "timed_out",
  "node.cancelled": "cancelled",
  "node.skipped": "failed",
  "approval.requested": "failed",
};

const figure = (event: Event, name: PayloadField): number | null => {
  const value = event.payload[name];
  return typeof value === "number" ? value : null;
};

const answered = (event: Event): Record<string, unknown> | null => {
  const value = event.payload.answer;
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
};

/** Pairs the events that start and end an attempt. */
export function attemptsOf(events: readonly Event[]): Attempt[] {
  const all: Attempt[] = [];
  for (const event of events) {
    if (event.type === "node.started") {
      const number = figure(event, "attempt") ?? all.length + 1;
      const gateway = textField(event, "gateway");
      const open = { end: null, why: null, answer: null, tookMs: null, tokens: null, cost: null };
      all.push({ id: event.eventId, number, began: event.timestamp, gateway, ...open });
      continue;
    }
    const [last, end] = [all.at(-1), ENDS[event.type]];
    if (!last || !end || last.end !== null) continue;
    last.end = end;
    last.why = textField(event, "errorMessage") ?? textField(event, "cause");
    last.answer = answered(event);
    last.tookMs = Date.parse(event.timestamp) - Date.parse(last.began);
    const [read, wrote] = [figure(event, "inputTokens"), figure(event, "outputTokens")];
    last.tokens = read === null && wrote === null ? null : (read ?? 0) + (wrote ?? 0);
    last.cost = figure(event, "cost");
  }
  return all;
}

export function Attempts({ events }: { events: readonly Event[] }) {
  const all = attemptsOf(events);
  if (all.length === 0) return null;
  return (
    <details open={all.length > 1}>
      <summary>Attempts ({all.length})</summary>
      <ol className="attempts small">
        {all.map((one) => (
          <li key={one.id}>
            <div className="bar">
              <b>{one.number}</b>
              <Badge status={one.end ?? "running"} />
              <span className="muted">
                {clock(one.began)}
                {one.tookMs !== null && ` · ${duration(one.tookMs)}`}
                {one.gateway !== null && ` · ${visible(one.gateway)}`}
                {one.tokens !== null && one.tokens > 0 && ` · ${one.tokens} tokens`}
                {one.cost !== null && one.cost > 0 && ` · ${money(one.cost)}`}
              </span>
            </div>
            {one.why !== null && <p className="ink-bad">{visible(one.why)}</p>}
            {one.answer !== null && <Answer number={one.number} of={one.answer} />}
          </li>
        ))}
      </ol>
    </details>
  );
}

/** The answer of a failed attempt: its text, and all other fields. */
function Answer({ number, of }: { number: number; of: Record<string, unknown> }) {
  const { text, conversation: _, ...rest } = of;
  return (
    <details open>
      <summary>Answer</summary>
      {typeof text === "string" && <Value of={text} label={`Answer of attempt ${number}`} />}
      {!isEmpty(rest) && <Value of={rest} label={`Rest of the answer of attempt ${number}`} />}
    </details>
  );
}

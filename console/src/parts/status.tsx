// How the statuses of runs and steps look: one colour for one meaning, always with its word.

export type Tone = "good" | "bad" | "wait" | "busy" | "calm";

const TONES: Readonly<Record<string, Tone>> = {
  completed: "good",
  recovered: "good",
  approved: "good",
  allow: "good",
  failed: "bad",
  timed_out: "bad",
  blocked: "bad",
  block: "bad",
  rejected: "bad",
  cancelling: "wait",
  paused: "wait",
  awaiting_approval: "wait",
  waits_at_a_gate: "wait",
  retrying: "wait",
  pending: "calm",
  hold: "wait",
  running: "busy",
  streaming: "busy",
  would_be_sent: "good",
  would_ask_a_person: "wait",
  would_be_stopped: "bad",
  would_fail: "bad",
  healthy: "good",
  degraded: "wait",
  offline: "bad",
  terminated: "bad",
  error: "bad",
  deprecated: "wait",
  sunset: "wait",
  poc: "wait",
  permit: "good",
  forbid: "bad",
  closed: "bad",
  held: "wait",
};

/** The meaning of a status. */
export const tone = (status: string): Tone => TONES[status] ?? "calm";

/** A status in words. */
export const words = (status: string): string => status.replaceAll("_", " ");

const ENDED = new Set(["completed", "failed", "cancelled", "timed_out"]);

/** Whether a run in this status has ended. */
export const ended = (status: string): boolean => ENDED.has(status);

/** A status as it is shown. */
export function Badge({ status, as }: { status: string; as?: Tone | undefined }) {
  return <span className={`badge tone-${as ?? tone(status)}`}>{words(status)}</span>;
}

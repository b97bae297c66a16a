// Badges of statuses: one colour per meaning, always with the word.

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
  would_need_approval: "wait",
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

export const tone = (status: string): Tone => TONES[status] ?? "calm";

export const words = (status: string): string => status.replaceAll("_", " ");

const ENDED = new Set(["completed", "failed", "cancelled", "timed_out"]);

export const ended = (status: string): boolean => ENDED.has(status);

export function Badge({ status, as }: { status: string; as?: Tone | undefined }) {
  return <span className={`badge tone-${as ?? tone(status)}`}>{words(status)}</span>;
}

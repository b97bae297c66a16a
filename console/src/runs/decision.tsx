// A decision gate by gate: what was compared, and what would unblock the step.
import type { Event } from "../api/follow";
import { clock, money } from "../parts/format";
import { Badge, words } from "../parts/status";
import { visible } from "../parts/value";
import { CallValues, resourceName, type ValueFacts } from "./call-values";

interface Gate {
  gate: string;
  outcome: string;
  code?: string;
  message?: string;
  hint?: string;
  observe?: boolean;
  figures?: Record<string, unknown>;
}

const MARKS: Readonly<Record<string, [string, string]>> = {
  pass: ["✓", "good"],
  warn: ["!", "wait"],
  block: ["✕", "bad"],
  hold: ["‖", "wait"],
  skip: ["–", "calm"],
};

/** Micro-cents in a dollar. */
const MICRO_CENTS = 100_000_000;
const SUMS = new Set(["amount", "held", "worst"]);

/** A compared figure as text. */
function figure(gate: string, name: string, value: unknown): string {
  if (gate.startsWith("budget") && SUMS.has(name) && typeof value === "number")
    return money(value / MICRO_CENTS);
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function GateLine({ gate }: { gate: Gate }) {
  const [mark, ink] = MARKS[gate.outcome] ?? ["?", "calm"];
  const figures = Object.entries(gate.figures ?? {}).map(
    ([name, value]) => `${words(name)} ${figure(gate.gate, name, value)}`,
  );
  return (
    <li>
      <span className={`ink-${ink}`} aria-hidden="true">
        {mark}
      </span>
      <span>{words(gate.gate)}</span>
      <span className={`small ink-${ink}`}>
        {gate.outcome}
        {gate.observe && " (observed only)"}
      </span>
      {gate.message && <p>{visible(gate.message)}</p>}
      {gate.hint && (
        <p>
          <strong>To unblock:</strong> {visible(gate.hint)}
        </p>
      )}
      {figures.length > 0 && <p>{visible(figures.join(" · "))}</p>}
    </li>
  );
}

/** A decision as the API writes it. */
export interface GateDecision {
  disposition?: string;
  gates?: Gate[];
  actionDigest?: string;
  matched?: PolicyMatch[];
  shadow?: { disposition?: string; matched?: PolicyMatch[] };
  facts?: ValueFacts;
}

interface PolicyMatch {
  policy: string;
  action: string;
  enforcement: string;
}

/** The policies that matched, of the set in force or of the one in shadow. */
function Matches({ of, title }: { of: readonly PolicyMatch[]; title: string }) {
  if (of.length === 0) return null;
  return (
    <p className="small">
      {title}:{" "}
      {visible(
        of
          .map(({ policy, action, enforcement }) => {
            const strictly = enforcement === "hard" ? "" : `, ${enforcement}`;
            return `${policy} (${words(action)}${strictly})`;
          })
          .join(", "),
      )}
    </p>
  );
}

export function Gates({ of }: { of: GateDecision }) {
  return (
    <>
      <ul className="gates">
        {(of.gates ?? []).map((gate) => (
          <GateLine key={gate.gate} gate={gate} />
        ))}
      </ul>
      {of.actionDigest && (
        <p className="small muted cut" title={of.actionDigest}>
          action <code>{of.actionDigest}</code>
        </p>
      )}
    </>
  );
}

export function Decision({ event }: { event: Event }) {
  const judgement = event.payload as GateDecision;
  const { facts, shadow } = judgement;
  const action = facts?.verb ? `${words(facts.verb)} ${resourceName(facts)}` : "";
  return (
    <div className="decision">
      <p className="bar small">
        <Badge status={judgement.disposition ?? "unknown"} />
        {action !== "" && <span>{visible(action)}</span>}
        <span className="muted">
          event {event.eventId}, {clock(event.timestamp)}
        </span>
      </p>
      {facts && <CallValues facts={facts} />}
      <Matches of={judgement.matched ?? []} title="Policies that matched" />
      {shadow && (
        <Matches
          of={shadow.matched ?? []}
          title={`In shadow (${shadow.disposition ?? "unknown"})`}
        />
      )}
      <Gates of={judgement} />
    </div>
  );
}

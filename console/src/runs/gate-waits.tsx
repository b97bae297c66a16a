// Steps that wait at a gate: the cause, and what unblocks them.
import { ended } from "../parts/status";
import { visible } from "../parts/value";
import type { Node } from "./live-run";

/** Most steps named one by one. */
const NAMED_MAX = 5;

export const waitsAtGate = (node: Pick<Node, "status" | "waiting_reason">): boolean =>
  node.waiting_reason === "gate" && !ended(node.status);

/** The status to show: waiting at a gate says more than queued. */
export const shownStatus = (node: Pick<Node, "status" | "waiting_reason">): string =>
  waitsAtGate(node) ? "waits_at_a_gate" : node.status;

/** Splits an unblock hint, which has the form `code: hint`. */
export function causeOf(hint: string | null): { code: string | null; help: string } {
  const found = /^([a-z][a-z0-9_]*)(?:: ([\s\S]*))?$/.exec(hint ?? "");
  return found
    ? { code: found[1] ?? null, help: found[2] ?? "" }
    : { code: null, help: hint ?? "" };
}

/** The cause of a wait, with a link to its documentation. */
export function Cause({ hint }: { hint: string | null }) {
  const { code, help } = causeOf(hint);
  return (
    <>
      {code !== null && (
        <a href={`/api/docs/errors/${encodeURIComponent(code)}`} target="_blank" rel="noreferrer">
          {visible(code)}
        </a>
      )}
      {help !== "" && <span>{visible(`${code === null ? "" : ": "}${help}`)}</span>}
    </>
  );
}

interface Props {
  nodes: readonly Node[];
  onChoose: (step: string) => void;
}

/** Notices in the head of a run. */
export function GateWaits({ nodes, onChoose }: Props) {
  const waiting = nodes.filter(waitsAtGate);
  if (waiting.length === 0) return null;
  return (
    <>
      {waiting.slice(0, NAMED_MAX).map((node) => (
        <p key={node.node_id} className="note" role="status">
          <button type="button" className="link" onClick={() => onChoose(node.node_id)}>
            {visible(node.node_id)}
          </button>{" "}
          waits at a gate: <Cause hint={node.unblock_hint} />
        </p>
      ))}
      {waiting.length > NAMED_MAX && (
        <p className="note">{waiting.length - NAMED_MAX} more steps wait at gates.</p>
      )}
    </>
  );
}

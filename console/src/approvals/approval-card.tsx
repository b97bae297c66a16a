// One approval request: the exact action, what changed since it was requested, who may decide and until when.
import type { Schemas } from "../api/client";
import { Copyable, Moment, money } from "../parts/format";
import { Badge } from "../parts/status";
import { formatValue, isEmpty, Value, visible } from "../parts/value";
import { Link, runPath } from "../route";
import { useSession } from "../session";
import { costCeilingOf, MICRO_CENTS } from "./constraints";
import { DecisionForm } from "./decision-form";
import { reasonNotToDecide } from "./eligibility";

export type Approval = Schemas["Approval"];

const SOURCES: Readonly<Record<string, string>> = {
  step: "required by the workflow",
  policy: "required by a policy",
  tool: "a tool call",
  escalation: "the step failed twice",
};

export function ApprovalCard({ approval }: { approval: Approval }) {
  const session = useSession();
  const refused = reasonNotToDecide(approval, session);
  return (
    <article className="card question" aria-label={`Approval request of ${approval.node_id}`}>
      <div className="bar">
        <Badge status={approval.status} as={approval.status === "pending" ? "wait" : undefined} />
        <Link href={`${runPath(approval.run_id)}?step=${encodeURIComponent(approval.node_id)}`}>
          {approval.workflow} › {approval.node_id}
        </Link>
        <span className="muted small">{SOURCES[approval.source] ?? approval.source}</span>
      </div>
      <h2>{visible(approval.summary)}</h2>
      <Facts approval={approval} />
      <CalledTool approval={approval} />
      <ChangedParts approval={approval} />
      {!isEmpty(approval.action) && (
        <details open>
          <summary>Exact action</summary>
          <Value of={approval.action} label="Exact action" />
        </details>
      )}
      {refused === null ? <DecisionForm approval={approval} /> : <p className="muted">{refused}</p>}
    </article>
  );
}

function Facts({ approval }: { approval: Approval }) {
  const reasons = approval.reasons ?? [];
  const ceiling = costCeilingOf(approval);
  return (
    <dl className="facts">
      <dt>Requested</dt>
      <dd>
        <Moment at={approval.requested_at} />
        {approval.initiator && ` in a run started by ${approval.initiator}`}
      </dd>
      {approval.status === "pending" && (
        <>
          <dt>Deadline</dt>
          <dd>
            <Moment at={approval.expires_at} />, then it is treated as rejected
          </dd>
        </>
      )}
      <dt>Approvers</dt>
      <dd>
        {approval.approvers.length > 0
          ? approval.approvers.join(", ")
          : "everyone with the permission to approve"}
        {approval.not_initiator && ", except the initiator of the run"}
        {approval.quorum > 1 && ` · ${approval.votes.length} of ${approval.quorum} have approved`}
        {approval.votes.length > 0 && ` (${approval.votes.join(", ")})`}
      </dd>
      {ceiling !== null && (
        <>
          <dt>Cost</dt>
          <dd>at most {money(ceiling / MICRO_CENTS)}</dd>
        </>
      )}
      {reasons.length > 0 && (
        <>
          <dt>Reason</dt>
          <dd>{visible(reasons.join("; "))}</dd>
        </>
      )}
      {approval.by && (
        <>
          <dt>Decided by</dt>
          <dd>
            {visible(approval.by)}
            {approval.comment && `: ${visible(approval.comment)}`}
          </dd>
        </>
      )}
      {approval.digest && (
        <>
          <dt>Digest</dt>
          <dd>
            <Copyable text={approval.digest} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** The arguments of a tool call, and where each value was seen before. */
function CalledTool({ approval }: { approval: Approval }) {
  const { call } = approval;
  if (!call) return null;
  return (
    <div>
      <table>
        <caption>Arguments of {visible(call.tool)}</caption>
        <thead>
          <tr>
            <th>Argument</th>
            <th>Value</th>
            <th>Where it comes from</th>
          </tr>
        </thead>
        <tbody>
          {call.arguments.map((one) => (
            <tr key={one.path}>
              <td>{visible(one.path)}</td>
              <td>{formatValue(one.value ?? null)}</td>
              <td>{one.seen.every(isTrusted) ? one.places : <strong>{one.places}</strong>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {call.asked_for && (
        <details>
          <summary>What the caller asked for</summary>
          <Value of={call.asked_for} label="What the caller asked for" />
        </details>
      )}
    </div>
  );
}

/** Whether a value was seen only where strangers cannot write. */
function isTrusted(place: string): boolean {
  return place === "prompt" || place === "records";
}

/** Differences to the action that was approved before: the reason for another request. */
function ChangedParts({ approval }: { approval: Approval }) {
  const changes = approval.changes as { path?: string; before?: unknown; after?: unknown }[];
  if (changes.length === 0) return null;
  return (
    <div>
      <p className="note">
        The action has changed since it was approved, so it needs a new approval.
      </p>
      <table className="difference">
        <thead>
          <tr>
            <th>Part</th>
            <th>Before</th>
            <th>Now</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((one) => (
            <tr key={one.path}>
              <td>{visible(one.path ?? "")}</td>
              <td>{formatValue(one.before ?? null)}</td>
              <td>{formatValue(one.after ?? null)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

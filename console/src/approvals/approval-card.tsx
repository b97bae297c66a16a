// One question: the exact action, what changed since it was asked, who may decide and until when.
import type { Schemas } from "../api/client";
import { Copyable, Moment, money } from "../parts/format";
import { Badge } from "../parts/status";
import { isNothing, Value, visible, written } from "../parts/value";
import { Link, runPath } from "../route";
import { useSession } from "../session";
import { ceilingOf, MICRO_CENTS } from "./constraints";
import { Decide } from "./decision-form";
import { whyNot } from "./eligibility";

export type Approval = Schemas["Approval"];

const SOURCES: Readonly<Record<string, string>> = {
  step: "the workflow asks here",
  policy: "a policy holds this step",
  escalation: "the step failed twice and asks what to do",
};

export function Question({ asked }: { asked: Approval }) {
  const session = useSession();
  const refused = whyNot(asked, session);
  return (
    <article className="card question" aria-label={`Question of ${asked.node_id}`}>
      <div className="bar">
        <Badge status={asked.status} as={asked.status === "pending" ? "wait" : undefined} />
        <Link href={`${runPath(asked.run_id)}?step=${encodeURIComponent(asked.node_id)}`}>
          {asked.workflow} › {asked.node_id}
        </Link>
        <span className="muted small">{SOURCES[asked.source] ?? asked.source}</span>
      </div>
      <h2>{visible(asked.summary)}</h2>
      <Facts asked={asked} />
      <Changes asked={asked} />
      {!isNothing(asked.action) && (
        <details open>
          <summary>The exact action</summary>
          <Value of={asked.action} label="The exact action" />
        </details>
      )}
      {refused === null ? <Decide asked={asked} /> : <p className="muted">{refused}</p>}
    </article>
  );
}

function Facts({ asked }: { asked: Approval }) {
  const reasons = asked.reasons ?? [];
  const ceiling = ceilingOf(asked);
  return (
    <dl className="facts">
      <dt>Asked</dt>
      <dd>
        <Moment at={asked.requested_at} />
        {asked.initiator && ` in a run of ${asked.initiator}`}
      </dd>
      {asked.status === "pending" && (
        <>
          <dt>Deadline</dt>
          <dd>
            <Moment at={asked.expires_at} />, then it counts as rejected
          </dd>
        </>
      )}
      <dt>May decide</dt>
      <dd>
        {asked.approvers.length > 0
          ? asked.approvers.join(", ")
          : "anybody who may answer approvals"}
        {asked.not_initiator && ", but not who started the run"}
        {asked.quorum > 1 && ` · ${asked.votes.length} of ${asked.quorum} have approved`}
        {asked.votes.length > 0 && ` (${asked.votes.join(", ")})`}
      </dd>
      {ceiling !== null && (
        <>
          <dt>Cost</dt>
          <dd>at most {money(ceiling / MICRO_CENTS)}</dd>
        </>
      )}
      {reasons.length > 0 && (
        <>
          <dt>Because</dt>
          <dd>{visible(reasons.join("; "))}</dd>
        </>
      )}
      {asked.by && (
        <>
          <dt>Answered by</dt>
          <dd>
            {visible(asked.by)}
            {asked.comment && `: ${visible(asked.comment)}`}
          </dd>
        </>
      )}
      {asked.digest && (
        <>
          <dt>Digest</dt>
          <dd>
            <Copyable text={asked.digest} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** What is another since somebody agreed before: the step asks again because of it. */
function Changes({ asked }: { asked: Approval }) {
  const changes = asked.changes as { path?: string; before?: unknown; after?: unknown }[];
  if (changes.length === 0) return null;
  return (
    <div>
      <p className="note">What was agreed to has changed, and so it is asked again.</p>
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
              <td>{written(one.before ?? null)}</td>
              <td>{written(one.after ?? null)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

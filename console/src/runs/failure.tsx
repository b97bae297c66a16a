// The failure snapshot of a run: where it stopped, completed steps, and variables.
import { Value, visible } from "../parts/value";
import type { RunState } from "./live-run";

type Snapshot = NonNullable<RunState["failure_snapshot"]>;

interface Props {
  of: Snapshot;
  onChoose: (step: string) => void;
}

/** Most steps named in a line. */
const NAMED_MAX = 40;

export function FailureSnapshot({ of, onChoose }: Props) {
  const lines: [string, readonly string[]][] = [
    ["Failed", of.failed],
    ["Completed", of.completed],
    ["Skipped", of.skipped],
    ["Cancelled", of.cancelled],
    ["Writers of variables, in order", of.writer_order],
  ];
  return (
    <section className="field" aria-label="Where it stopped">
      <h2>Where it stopped</h2>
      {of.failed_node_id !== null && (
        <p>
          The run stopped at <Step id={of.failed_node_id} onChoose={onChoose} />.
        </p>
      )}
      <dl className="facts small">
        {lines.map(([name, ids]) =>
          ids.length === 0 ? null : (
            <div key={name} className="pair">
              <dt>{name}</dt>
              <dd>
                {ids.slice(0, NAMED_MAX).map((id, at) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a step may be listed twice
                  <span key={`${at} ${id}`}>
                    {at > 0 && ", "}
                    <Step id={id} onChoose={onChoose} />
                  </span>
                ))}
                {ids.length > NAMED_MAX && ` and ${ids.length - NAMED_MAX} more`}
              </dd>
            </div>
          ),
        )}
      </dl>
      {Object.keys(of.variables).length > 0 && (
        <>
          <p className="small muted">Variables with their last values</p>
          <Value of={of.variables} label="Variables" />
        </>
      )}
    </section>
  );
}

function Step({ id, onChoose }: { id: string; onChoose: (step: string) => void }) {
  return (
    <button type="button" className="link" onClick={() => onChoose(id)}>
      {visible(id)}
    </button>
  );
}

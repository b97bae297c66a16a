// Value flow: the origin of a step's inputs and the consumers of its outputs.
import { useQuery } from "@tanstack/react-query";
import { request, type Schemas } from "../api/client";
import { visible } from "../parts/value";
import { Link, runPath } from "../route";
import type { Feed } from "./feed";
import type { Node } from "./live-run";
import type { FlowEdge } from "./step-box";

export type ValueFlow = Schemas["Provenance"]["rows"][number];

/** Most flows in the list. */
const LISTED_MAX = 60;
const NONE: readonly ValueFlow[] = [];

/** Loads the direct value flows of a step. */
export function useValueFlows(
  run: string,
  node: Node | undefined,
  feed: Feed,
): readonly ValueFlow[] {
  const step = node?.node_id ?? "";
  // The inputs of a step are settled once it starts; its consumers, once they start.
  const when = node?.status === "streaming" ? "streaming" : (feed.touched.get(step) ?? 0);
  const found = useQuery({
    queryKey: ["run", run, "provenance", step, when],
    queryFn: async ({ signal }) => {
      const query = { step, steps: 1 };
      return (
        await request("get", "/api/v1/runs/{run}/provenance", { path: { run }, query, signal })
      ).data.rows;
    },
    enabled: node !== undefined,
    placeholderData: (before) => before,
  });
  if (!found.data || !node) return NONE;
  return found.data;
}

const isStep = (run: string, step: string) => (end: ValueFlow["source"]) =>
  end.run_id === run && end.node_id === step;

/** Flows between two steps of this run, for the graph. */
export function flowEdges(run: string, flows: readonly ValueFlow[]): FlowEdge[] {
  return flows
    .filter(
      (one) => one.source.run_id === run && one.target.run_id === run && one.source.node_id !== "",
    )
    .map((one) => ({
      from: one.source.node_id,
      to: one.target.node_id,
      label: visible(one.source_output_path),
    }));
}

interface Props {
  run: string;
  step: string;
  flows: readonly ValueFlow[];
  onChoose: (step: string) => void;
}

export function ValueFlowList({ run, step, flows, onChoose }: Props) {
  const isThisStep = isStep(run, step);
  const [incoming, outgoing] = [
    flows.filter((one) => isThisStep(one.target)),
    flows.filter((one) => isThisStep(one.source)),
  ];
  if (incoming.length + outgoing.length === 0) return null;
  return (
    <details open>
      <summary>Value flow</summary>
      <ul className="values small">
        {incoming.slice(0, LISTED_MAX).map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the flows of a step only grow
          <li key={`from${at}`}>
            <code>{visible(one.target_input_path)}</code> <span className="muted">from</span>{" "}
            <FlowEnd run={run} end={one.source} onChoose={onChoose} />{" "}
            <code>{visible(one.source_output_path)}</code>
          </li>
        ))}
        {outgoing.slice(0, LISTED_MAX).map((one, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the flows of a step only grow
          <li key={`to${at}`}>
            <code>{visible(one.source_output_path)}</code> <span className="muted">to</span>{" "}
            <FlowEnd run={run} end={one.target} onChoose={onChoose} />{" "}
            <code>{visible(one.target_input_path)}</code>
          </li>
        ))}
      </ul>
      {incoming.length + outgoing.length > LISTED_MAX && (
        <p className="muted small">
          {incoming.length} incoming, {outgoing.length} outgoing; not all are listed.
        </p>
      )}
    </details>
  );
}

function FlowEnd({
  run,
  end,
  onChoose,
}: {
  run: string;
  end: ValueFlow["source"];
  onChoose: (step: string) => void;
}) {
  if (end.run_id !== run) {
    return (
      <Link href={`${runPath(end.run_id)}?step=${encodeURIComponent(end.node_id)}`}>
        {visible(end.node_id)} of{" "}
        {end.workflow === null ? "another run" : `a run of ${visible(end.workflow)}`}
      </Link>
    );
  }
  if (end.node_id === "") return <span>the run</span>;
  return (
    <button type="button" className="link" onClick={() => onChoose(end.node_id)}>
      {visible(end.node_id)}
    </button>
  );
}

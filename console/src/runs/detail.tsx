// One run: figures, graph, timeline, journal, result, and the inspector of a step.
import { useQueryClient } from "@tanstack/react-query";
import { type KeyboardEvent, useEffect, useMemo } from "react";
import { ErrorMessage, Loading } from "../parts/feedback";
import { Copyable, duration, Moment, money, useNow, useTitle } from "../parts/format";
import { Badge, words } from "../parts/status";
import { isEmpty, Value, visible } from "../parts/value";
import { Link, runPath, useQueryParam } from "../route";
import { Events } from "./events";
import { FailureSnapshot } from "./failure";
import { GateWaits, shownStatus } from "./gate-waits";
import { Graph } from "./graph";
import { Inspector } from "./inspector";
import { type LiveRun, type RunDetail, type RunState, useRun } from "./live-run";
import { Packet } from "./packet";
import { Phases } from "./phases";
import { RunActions } from "./run-actions";
import { Timeline } from "./timeline";
import { flowEdges, useValueFlows } from "./value-flow";

const VIEWS = ["graph", "timeline", "events", "result"] as const;
type View = (typeof VIEWS)[number];

export default function RunPage({ run }: { run: string }) {
  const live = useRun(run);
  const { detail, state } = live;
  const queries = useQueryClient();
  useTitle(state ? `${state.workflow} ${words(state.status)}` : "Run");
  const pendingCount = state?.approvals.filter((one) => one.status === "pending").length ?? 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed count reloads the inbox
  useEffect(() => {
    void queries.invalidateQueries({ queryKey: ["approvals"], refetchType: "active" });
  }, [queries, pendingCount]);
  if (!detail || !state) {
    if (!live.error) return <Loading what="the run" />;
    return (
      <div className="page">
        <ErrorMessage error={live.error} />
        <Link href="/runs">All runs</Link>
      </div>
    );
  }
  return (
    <div className="run">
      <Head detail={detail} state={state} onChanged={live.refresh} />
      <Body live={live} detail={detail} state={state} />
    </div>
  );
}

function Head({
  detail,
  state,
  onChanged,
}: {
  detail: RunDetail;
  state: RunState;
  onChanged: () => void;
}) {
  const pending = state.approvals.filter((one) => one.status === "pending");
  const [, setStep] = useQueryParam("step");
  return (
    <header className="run-head">
      <div className="bar">
        <h1>{state.workflow}</h1>
        {state.version !== null && <span className="muted">v{state.version}</span>}
        <Badge status={state.status} />
        {state.degraded && <Badge status="degraded" as="wait" />}
        <span className="grow" />
        <RunActions
          state={state}
          args={detail.args as Record<string, unknown>}
          onChanged={onChanged}
        />
      </div>
      <Figures detail={detail} state={state} />
      <Phases state={state} />
      {state.error_code && (
        <div className="refusal">
          <strong>{visible(state.error_code)}</strong>
          {state.error_message !== state.error_code && (
            <span>{visible(state.error_message ?? "")}</span>
          )}
        </div>
      )}
      <GateWaits nodes={state.node_results} onChoose={setStep} />
      {pending.map((one) => (
        <p key={one.approval_id} className="note bar">
          <span className="grow">
            <strong>{one.node_id}</strong> needs approval: {visible(one.summary)}
          </span>
          <Link href={`/approvals/${encodeURIComponent(one.approval_id)}`} className="button">
            Decide
          </Link>
        </p>
      ))}
    </header>
  );
}

function Figures({ detail, state }: { detail: RunDetail; state: RunState }) {
  const now = useNow(state.completed_at ? 3_600_000 : 1_000);
  const took = state.duration_ms ?? now - Date.parse(state.started_at);
  const done = state.executed_count;
  const counts: [string, number][] = [
    ["in flight", state.in_flight_count],
    ["waiting", state.waiting_count],
    ["failed", state.failed_count],
  ];
  const origin = detail.origin as { kind?: string; run_id?: string } | null | undefined;
  return (
    <div className="figures">
      <Copyable text={state.run_id} />
      <span>
        by <b>{detail.initiator}</b> <Moment at={state.started_at} />
      </span>
      <span>
        <b>{duration(took)}</b>
      </span>
      <span>
        <b>
          {done} of {state.node_results.length}
        </b>{" "}
        steps done
      </span>
      {counts.map(([name, count]) =>
        count > 0 ? (
          <span key={name}>
            <b>{count}</b> {name}
          </span>
        ) : null,
      )}
      <span>
        <b>{money(state.cost)}</b>
      </span>
      <span>
        <b>{state.input_tokens + state.output_tokens}</b> tokens
      </span>
      {origin?.run_id && (
        <span>
          {origin.kind} of <Link href={runPath(origin.run_id)}>another run</Link>
        </span>
      )}
      {state.parent_run_id && (
        <span>
          child of <Link href={runPath(state.parent_run_id)}>a run</Link>
        </span>
      )}
    </div>
  );
}

function Body({ live, detail, state }: { live: LiveRun; detail: RunDetail; state: RunState }) {
  const [viewParam, setView] = useQueryParam("view");
  const [step, setStep] = useQueryParam("step");
  const view: View = VIEWS.find((one) => one === viewParam) ?? "graph";
  const chosen = step === "" ? null : step;
  const node = state.node_results.find((one) => one.node_id === chosen);
  const status = useMemo(
    () => new Map(state.node_results.map((one) => [one.node_id, shownStatus(one)])),
    [state.node_results],
  );
  /** Arrow keys move between tabs. */
  const moveTab = (event: KeyboardEvent, from: View) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const next = VIEWS[(VIEWS.indexOf(from) + by + VIEWS.length) % VIEWS.length];
    if (by === 0 || !next) return;
    setView(next === "graph" ? "" : next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  const valueFlows = useValueFlows(state.run_id, node, live.feed);
  const flows = useMemo(() => flowEdges(state.run_id, valueFlows), [state.run_id, valueFlows]);
  return (
    <div className={node ? "run-body" : "run-body alone-view"}>
      <div className="views">
        <div className="tabs" role="tablist" aria-label="Views of the run">
          {VIEWS.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              aria-selected={one === view}
              aria-controls="view"
              onKeyDown={(event) => moveTab(event, one)}
              onClick={() => setView(one === "graph" ? "" : one)}
            >
              {one[0]?.toUpperCase() + one.slice(1)}
            </button>
          ))}
        </div>
        <div
          className="view"
          id="view"
          role="tabpanel"
          aria-labelledby={`tab-${view}`}
          tabIndex={0}
        >
          {view === "graph" && (
            <Graph
              steps={detail.steps}
              status={status}
              flows={flows}
              chosen={chosen}
              onChoose={setStep}
            />
          )}
          {view === "timeline" && <Timeline state={state} chosen={chosen} onChoose={setStep} />}
          {view === "events" && (
            <Events run={state.run_id} feed={live.feed} chosen={chosen} onChoose={setStep} />
          )}
          {view === "result" && <Result detail={detail} state={state} onChoose={setStep} />}
        </div>
      </div>
      {node && (
        <Inspector
          run={state.run_id}
          state={state}
          node={node}
          feed={live.feed}
          flows={valueFlows}
          onChoose={setStep}
          onClose={() => setStep("")}
        />
      )}
    </div>
  );
}

interface ResultProps {
  detail: RunDetail;
  state: RunState;
  onChoose: (step: string) => void;
}

function Result({ detail, state, onChoose }: ResultProps) {
  return (
    <div className="page">
      {state.failure_snapshot && (
        <FailureSnapshot of={state.failure_snapshot} onChoose={onChoose} />
      )}
      <section className="field">
        <h2>Outputs</h2>
        {isEmpty(state.outputs) ? (
          <p className="muted">None yet.</p>
        ) : (
          <Value of={state.outputs} label="Outputs" />
        )}
      </section>
      <section className="field">
        <h2>Arguments</h2>
        {isEmpty(detail.args) ? (
          <p className="muted">None.</p>
        ) : (
          <Value of={detail.args} label="Arguments" />
        )}
      </section>
      <section className="field">
        <h2>Definition</h2>
        <Copyable text={detail.definition_hash} />
      </section>
      <Packet run={state.run_id} />
    </div>
  );
}

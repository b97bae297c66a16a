// One workflow: its graph, its arguments, and the form that starts or dry-runs it.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, lazy, type ReactNode, Suspense, useMemo, useRef, useState } from "react";
import { request, type Schemas } from "../api/client";
import { ErrorMessage, Loading } from "../parts/feedback";
import { FormField } from "../parts/form-field";
import { type Draft, type FieldSpecs, initialDrafts, parseDrafts } from "../parts/form-values";
import { useTitle } from "../parts/format";
import { Value } from "../parts/value";
import { Link, navigate, runPath, useQueryParam } from "../route";
import { Graph } from "../runs/graph";
import { usePermission } from "../session";
import { DataFlow } from "./data-flow";
import { type Forecast, ForecastCard, forecastStatuses } from "./forecast";
import { GatewayStatus } from "./gateway-status";
import { type FlowPicture, graphSteps, labelledEdges, type Plan } from "./plan";

type Version = Schemas["VersionShown"];

const Editor = lazy(() => import("./editor"));

export default function WorkflowPage({ name }: { name: string }) {
  const [editing] = useQueryParam("edit");
  const shown = useQuery({
    queryKey: ["workflow", name],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/workflows/{name}", { path: { name }, signal })).data,
  });
  useTitle(name);
  if (!shown.data) {
    return (
      <div className="page">
        {shown.error ? <ErrorMessage error={shown.error} /> : <Loading what="the workflow" />}
      </div>
    );
  }
  if (editing !== "") {
    return (
      <Suspense fallback={<Loading what="the editor" />}>
        <Editor key={shown.data.version} from={shown.data} />
      </Suspense>
    );
  }
  return <WorkflowDetail shown={shown.data} />;
}

function WorkflowDetail({ shown }: { shown: Version }) {
  const { name } = shown;
  const may = usePermission("workflow:execute");
  const [forecast, setForecast] = useState<Forecast | null>(null);
  const plan = shown.plan as Plan | null;
  const steps = useMemo(() => graphSteps(plan, shown.waves), [plan, shown.waves]);
  const flow = shown.flow as FlowPicture | null;
  const flows = useMemo(() => labelledEdges(flow), [flow]);
  const status = useMemo(() => forecastStatuses(forecast), [forecast]);
  return (
    <div className="page">
      <div className="bar">
        <h1>{name}</h1>
        <span className="muted">v{shown.version}</span>
        <span className="grow" />
        <Link href={`/workflows/${encodeURIComponent(name)}?edit=yes`}>Edit the document</Link>
        <Link href={`/runs?workflow=${encodeURIComponent(name)}`}>Runs of this workflow</Link>
      </div>
      {plan?.description && <p>{plan.description}</p>}
      <div className="launch">
        <div className="card">
          {plan && (
            <div className="picture">
              <Graph steps={steps} status={status} flows={flows} chosen={null} onChoose={null} />
            </div>
          )}
          {flow && <DataFlow flow={flow} />}
          <details className="document">
            <summary>Document</summary>
            <Value of={shown.document} label="Document" />
          </details>
        </div>
        {!plan && (
          <p className="note">
            The document no longer fits the configuration and cannot be started.
          </p>
        )}
        {plan && may && <StartForm name={name} fields={plan.args ?? {}} onForecast={setForecast} />}
        {plan && !may && <p className="muted">Your role cannot start runs.</p>}
      </div>
      {forecast && <ForecastCard forecast={forecast} />}
    </div>
  );
}

interface StartFormProps {
  name: string;
  fields: FieldSpecs;
  onForecast: (forecast: Forecast | null) => void;
}

type Busy = "starting" | "evaluating" | null;

function StartForm({ name, fields, onForecast }: StartFormProps) {
  const [drafts, setDrafts] = useState<Record<string, Draft>>(() => initialDrafts(fields));
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({});
  const [busy, setBusy] = useState<Busy>(null);
  const [refused, setRefused] = useState<unknown>(null);
  // Idempotency key: sending the form twice starts one run.
  const key = useRef(crypto.randomUUID?.() ?? String(Math.random()));
  /** Calls `act` with the arguments if every field is valid. */
  const withValues = async (
    doing: Busy,
    act: (values: Record<string, unknown>) => Promise<void>,
  ) => {
    const given = parseDrafts(fields, drafts);
    setWrong(given.wrong);
    setRefused(null);
    if (Object.keys(given.wrong).length > 0) return;
    setBusy(doing);
    try {
      await act(given.values);
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(null);
    }
  };
  const start = (event: FormEvent) => {
    event.preventDefault();
    return withValues("starting", async (args) => {
      const options = { path: { name }, body: { args }, key: key.current };
      const { data } = await request("post", "/api/v1/workflows/{name}/runs", options);
      navigate(runPath(data.run_id));
    });
  };
  const dryRun = () => {
    onForecast(null);
    return withValues("evaluating", async (args) => {
      const { data } = await request("post", "/api/v1/workflows/{name}/forecast", {
        path: { name },
        body: { args },
      });
      onForecast(data);
    });
  };
  const change = (field: string, draft: Draft) => {
    // Changed arguments mean a different run, and invalidate the dry run.
    key.current = crypto.randomUUID?.() ?? String(Math.random());
    onForecast(null);
    setDrafts({ ...drafts, [field]: draft });
  };
  return (
    <form className="card" onSubmit={start} noValidate>
      <h2>Start a run</h2>
      <GatewayStatus workflow={name} />
      <Fields fields={fields} drafts={drafts} wrong={wrong} onChange={change} />
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        <button type="submit" className="primary" disabled={busy !== null}>
          {busy === "starting" ? "Starting…" : "Start"}
        </button>
        <button type="button" disabled={busy !== null} onClick={dryRun}>
          {busy === "evaluating" ? "Evaluating…" : "Dry run"}
        </button>
      </div>
    </form>
  );
}

interface FieldsProps {
  fields: FieldSpecs;
  drafts: Readonly<Record<string, Draft>>;
  wrong: Readonly<Record<string, string>>;
  onChange: (field: string, draft: Draft) => void;
}

function Fields({ fields, drafts, wrong, onChange }: FieldsProps): ReactNode {
  const names = Object.keys(fields);
  if (names.length === 0) return <p className="muted">This workflow takes no arguments.</p>;
  return names.map((one) => (
    <FormField
      key={one}
      name={one}
      field={fields[one] ?? {}}
      draft={drafts[one] ?? ""}
      wrong={wrong[one]}
      onChange={(draft) => onChange(one, draft)}
    />
  ));
}

// One workflow: what it does, what it takes, and starting it.
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useMemo, useRef, useState } from "react";
import { ask, type Schemas } from "../api/client";
import { Field } from "../parts/field";
import { type Declarations, type Draft, empty, read } from "../parts/fields";
import { useTitle } from "../parts/figures";
import { Loading, Refusal } from "../parts/states";
import { Value } from "../parts/value";
import { go, Link, runPath } from "../route";
import { type Drawn, Graph } from "../runs/graph";
import { useMay } from "../session";

type Version = Schemas["VersionShown"];

interface Plan {
  description?: string;
  args?: Declarations;
  steps: { id: string; depends_on?: string[]; work?: { kind?: string } }[];
}

export default function Launch({ name }: { name: string }) {
  const shown = useQuery({
    queryKey: ["workflow", name],
    queryFn: async ({ signal }) => (await ask("get", "/api/v1/workflows/{name}", { path: { name }, signal })).data,
  });
  const may = useMay("workflow:execute");
  useTitle(name);
  if (!shown.data) {
    return <div className="page">{shown.error ? <Refusal error={shown.error} /> : <Loading what="the workflow" />}</div>;
  }
  const plan = shown.data.plan as Plan | null;
  return (
    <div className="page">
      <div className="bar">
        <h1>{shown.data.name}</h1>
        <span className="muted">v{shown.data.version}</span>
        <span className="grow" />
        <Link href={`/runs?workflow=${encodeURIComponent(name)}`}>Its runs</Link>
      </div>
      {plan?.description && <p>{plan.description}</p>}
      <div className="launch">
        <Picture shown={shown.data} plan={plan} />
        {!plan && <p className="note">It does not fit what is set up any more, and cannot be started.</p>}
        {plan && may && <Form name={name} fields={plan.args ?? {}} />}
        {plan && !may && <p className="muted">Your role does not start runs.</p>}
      </div>
    </div>
  );
}

function Picture({ shown, plan }: { shown: Version; plan: Plan | null }) {
  const steps = useMemo<Drawn[]>(() => {
    const wave = new Map(shown.waves.flatMap((ids, at) => ids.map((id) => [id, at] as const)));
    return (plan?.steps ?? []).map((step) => ({
      node_id: step.id,
      kind: step.work?.kind ?? "step",
      wave: wave.get(step.id) ?? 0,
      depends_on: step.depends_on ?? [],
    }));
  }, [shown, plan]);
  return (
    <div className="card">
      {plan && (
        <div className="picture">
          <Graph steps={steps} status={null} flows={[]} chosen={null} onChoose={null} />
        </div>
      )}
      <details className="document">
        <summary>The document</summary>
        <Value of={shown.document} label="The document" />
      </details>
    </div>
  );
}

function Form({ name, fields }: { name: string; fields: Declarations }) {
  const [drafts, setDrafts] = useState<Record<string, Draft>>(() => empty(fields));
  const [wrong, setWrong] = useState<Readonly<Record<string, string>>>({});
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  // However often it is sent, it is one run.
  const key = useRef(crypto.randomUUID?.() ?? String(Math.random()));
  const names = Object.keys(fields);
  const start = async (event: FormEvent) => {
    event.preventDefault();
    const given = read(fields, drafts);
    setWrong(given.wrong);
    setRefused(null);
    if (Object.keys(given.wrong).length > 0) return;
    setBusy(true);
    try {
      const wish = { path: { name }, body: { args: given.values }, key: key.current };
      const { data } = await ask("post", "/api/v1/workflows/{name}/runs", wish);
      go(runPath(data.run_id));
    } catch (error) {
      setRefused(error);
      setBusy(false);
    }
  };
  const change = (field: string, draft: Draft) => {
    // Other arguments are another run.
    key.current = crypto.randomUUID?.() ?? String(Math.random());
    setDrafts({ ...drafts, [field]: draft });
  };
  return (
    <form className="card" onSubmit={start} noValidate>
      <h2>Start it</h2>
      {names.length === 0 && <p className="muted">It takes no arguments.</p>}
      {names.map((one) => (
        <Field
          key={one}
          name={one}
          field={fields[one] ?? {}}
          draft={drafts[one] ?? ""}
          wrong={wrong[one]}
          onChange={(draft) => change(one, draft)}
        />
      ))}
      {refused !== null && <Refusal error={refused} />}
      <button type="submit" className="primary" disabled={busy}>
        {busy ? "Starting…" : "Start"}
      </button>
    </form>
  );
}

// Back-test of a changed policy set against recorded decisions, and storing the set.
import { useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request, type Schemas } from "../api/client";
import { Confirm } from "../parts/confirm";
import { Empty, ErrorMessage } from "../parts/feedback";
import { Moment } from "../parts/format";
import { Badge } from "../parts/status";
import { visible } from "../parts/value";
import { Link, runPath } from "../route";
import { type ArgumentFacts, argumentWords, briefValue } from "../runs/call-values";
import { usePermission } from "../session";
import { changedFiles, FILE_NAME, type Files, fileTexts } from "./policy-files";

type Set = Schemas["SetShown"];

interface Difference {
  run_id: string;
  node_id: string;
  event_id: number;
  at: string;
  was: string;
  would_be: string;
  because: string[];
  resource: string;
  values: { path: string; value?: unknown }[];
  arguments: (ArgumentFacts & { argument: string; value?: unknown })[];
}
interface BacktestResult {
  decisions: number;
  differ: number;
  unknown: number;
  data: Difference[];
}
interface Trial {
  /** The files that were tested: only these may be stored. */
  of: string;
  found: BacktestResult;
}

const SPANS: readonly [string, string][] = [
  ["86400", "Last day"],
  ["604800", "Last 7 days"],
  ["2592000", "Last 30 days"],
  ["", "All time"],
];

interface Props {
  active: Set;
  shadow: Set | null;
  onReset: () => void;
}

export function BackTest({ active, shadow, onReset }: Props) {
  const [files, setFiles] = useState<Files>(() => fileTexts(active));
  const [span, setSpan] = useState("604800");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const [trial, setTrial] = useState<Trial | null>(null);
  const differing = changedFiles(fileTexts(active), files);
  const test = async () => {
    setBusy(true);
    setRefused(null);
    const of = JSON.stringify(files);
    try {
      const body = { files, ...(span === "" ? {} : { since_s: Number(span) }) };
      const { data } = await request("post", "/api/v1/policies/test", { body });
      setTrial({ of, found: data as unknown as BacktestResult });
    } catch (error) {
      setTrial(null);
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  const fresh = trial !== null && trial.of === JSON.stringify(files);
  return (
    <section className="card" aria-label="Back-test">
      <div className="bar card-head">
        <h2>Back-test a change</h2>
        <span className="muted small">
          evaluates every recorded decision with these policies; nothing is enforced
        </span>
      </div>
      <div className="backtest">
        <Editor
          files={files}
          differing={differing}
          active={active}
          shadow={shadow}
          onChange={setFiles}
        />
        <div className="bar">
          <select
            aria-label="Time range"
            value={span}
            onChange={(event) => setSpan(event.target.value)}
          >
            {SPANS.map(([word, label]) => (
              <option key={word} value={word}>
                {label}
              </option>
            ))}
          </select>
          <button type="button" className="primary" disabled={busy} onClick={test}>
            {busy ? "Testing…" : "Run the back-test"}
          </button>
          {fresh && differing.length > 0 && (
            <Store files={files} active={active} shadow={shadow} onDone={onReset} />
          )}
        </div>
        {refused !== null && <ErrorMessage error={refused} />}
        <div aria-live="polite">
          {trial && <BacktestReport found={trial.found} stale={!fresh} />}
        </div>
      </div>
    </section>
  );
}

interface EditorProps {
  files: Files;
  differing: readonly string[];
  active: Set;
  shadow: Set | null;
  onChange: (files: Files) => void;
}

/** Edits the files of the set, one at a time. */
function Editor({ files, differing, active, shadow, onChange }: EditorProps) {
  const id = useId();
  const names = Object.keys(files);
  const [wanted, setWanted] = useState("");
  const chosen = files[wanted] === undefined ? (names[0] ?? "") : wanted;
  const add = (name: string) => {
    onChange({ ...files, [name]: "" });
    setWanted(name);
  };
  return (
    <>
      <div className="bar">
        <select
          aria-label="File"
          value={chosen}
          onChange={(event) => setWanted(event.target.value)}
        >
          {names.map((name) => (
            <option key={name} value={name}>
              {differing.includes(name) ? `${name} (changed)` : name}
            </option>
          ))}
        </select>
        <AddFile names={names} onAdd={add} />
        <span className="grow" />
        {shadow && (
          <button type="button" onClick={() => onChange(fileTexts(shadow))}>
            Load the shadow set
          </button>
        )}
        {differing.length > 0 && (
          <button type="button" onClick={() => onChange(fileTexts(active))}>
            Discard changes
          </button>
        )}
      </div>
      <label className="sr" htmlFor={id}>
        Text of {chosen}
      </label>
      <textarea
        id={id}
        className="mono editor"
        rows={10}
        spellCheck={false}
        value={files[chosen] ?? ""}
        onChange={(event) => onChange({ ...files, [chosen]: event.target.value })}
      />
    </>
  );
}

function AddFile({ names, onAdd }: { names: readonly string[]; onAdd: (name: string) => void }) {
  const [name, setName] = useState("");
  const fits = FILE_NAME.test(name) && !names.includes(name);
  return (
    <form
      className="bar"
      onSubmit={(event) => {
        event.preventDefault();
        if (!fits) return;
        onAdd(name);
        setName("");
      }}
    >
      <input
        aria-label="Name of a new file"
        placeholder="new-file.cedar"
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" disabled={!fits}>
        Add a file
      </button>
    </form>
  );
}

interface StoreProps {
  files: Files;
  active: Set;
  shadow: Set | null;
  onDone: () => void;
}

/** Stores exactly the tested files, as the shadow set or as the active set. */
function Store({ files, active, shadow, onDone }: StoreProps) {
  const may = usePermission("governance:write");
  const queries = useQueryClient();
  const [where, setWhere] = useState<"shadow" | "active" | null>(null);
  // A set that the server reads from files is changed in those files.
  if (!may || active.origin === "files") return null;
  const store = async () => {
    const row = (name: string) => (where === "shadow" ? `shadow/${name}` : name);
    const rows = Object.entries(files).map(([name, text]) => ({
      kind: "policy",
      name: row(name),
      body: { text, set: where },
    }));
    const stored = where === "shadow" ? shadow : active.origin === "stored" ? active : null;
    const gone = (stored?.files ?? []).filter((file) => files[file.name] === undefined);
    const remove = gone.map((file) => ({ kind: "policy", name: row(file.name) }));
    await request("post", "/api/v1/apply", { body: { rows, remove } });
    await queries.invalidateQueries({ queryKey: ["policies"] });
    onDone();
  };
  return (
    <>
      <button type="button" onClick={() => setWhere("shadow")}>
        Store as shadow…
      </button>
      <button type="button" className="danger" onClick={() => setWhere("active")}>
        Activate…
      </button>
      {where && (
        <Confirm
          title={where === "shadow" ? "Store as the shadow set?" : "Activate these policies?"}
          act={where === "shadow" ? "Store as shadow" : "Activate"}
          danger={where === "active"}
          onClose={() => setWhere(null)}
          onAct={store}
        >
          <p>
            {where === "shadow"
              ? "The server evaluates and records them with every decision, but never enforces them."
              : "They decide every step from now on. Existing approvals stay valid unless a policy that matched them has changed."}
          </p>
          <p className="muted small">{Object.keys(files).join(", ")}</p>
        </Confirm>
      )}
    </>
  );
}

/** The values that make the difference, on one line. */
function decidingValues(one: Difference): string {
  const values = one.values.map(({ path, value }) => {
    const shown = value === undefined ? "absent" : briefValue(value);
    return `${path.replace(/^context\./, "")} = ${shown}`;
  });
  const facts = one.arguments.map((each) => `${each.argument}: ${argumentWords(each)}`);
  return [...values, ...facts].join(", ");
}

function BacktestReport({ found, stale }: { found: BacktestResult; stale: boolean }) {
  return (
    <div className="found">
      <p>
        <strong>
          {found.differ === 0
            ? `None of ${found.decisions} decisions would differ.`
            : `${found.differ} of ${found.decisions} decisions would differ.`}
        </strong>
        {found.unknown > 0 && (
          <span className="muted">
            {" "}
            {found.unknown} could not be evaluated: their facts were erased, or the policy set is
            unknown.
          </span>
        )}
        {stale && (
          <span className="ink-wait">
            {" "}
            The policies have changed since; run the back-test again.
          </span>
        )}
      </p>
      {found.decisions === 0 && <Empty title="No decisions in this time range" />}
      {found.data.length > 0 && (
        <div className="table stacks">
          <table>
            <thead>
              <tr>
                <th>Was</th>
                <th>Would be</th>
                <th>Step</th>
                <th>Reason</th>
                <th>When</th>
              </tr>
            </thead>
            <tbody>
              {found.data.map((one) => (
                <tr key={`${one.run_id} ${one.event_id}`}>
                  <td>
                    <Badge status={one.was} />
                  </td>
                  <td data-label="→">
                    <Badge status={one.would_be} />
                  </td>
                  <td>
                    <Link href={`${runPath(one.run_id)}?step=${encodeURIComponent(one.node_id)}`}>
                      {visible(one.node_id)}
                    </Link>{" "}
                    <span className="small">{visible(one.resource)}</span>{" "}
                    <span className="muted mono small" title={one.run_id}>
                      {one.run_id.slice(0, 16)}…
                    </span>
                  </td>
                  <td className="wraps">
                    {visible(one.because.join(", "))}
                    <p className="muted small">{visible(decidingValues(one))}</p>
                  </td>
                  <td>
                    <Moment at={one.at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found.differ > found.data.length && (
        <p className="muted small">The first {found.data.length} are shown.</p>
      )}
    </div>
  );
}

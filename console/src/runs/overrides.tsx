// Changed values of a branch: arguments, and outputs of completed steps.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/client";
import { isEmpty, visible } from "../parts/value";

/** The edited texts, by argument name or `STEP.OUTPUT`. */
export interface OverrideDrafts {
  args: Readonly<Record<string, string>>;
  set: Readonly<Record<string, string>>;
}

export const NO_OVERRIDES: OverrideDrafts = { args: {}, set: {} };

/** Overrides are always edited as JSON, so that text and numbers cannot be confused. */
export const toJson = (value: unknown): string => JSON.stringify(value, null, 1) ?? "null";

/** The request body, and the names of overrides that are not valid JSON. */
export function parseOverrides(edits: OverrideDrafts): {
  body: { args?: object; set?: object };
  wrong: string[];
} {
  const wrong: string[] = [];
  const read = (typed: OverrideDrafts["args"]) => {
    const values: [string, unknown][] = [];
    for (const [name, text] of Object.entries(typed)) {
      try {
        values.push([name, JSON.parse(text)]);
      } catch {
        wrong.push(name);
      }
    }
    return Object.fromEntries(values);
  };
  const [args, set] = [read(edits.args), read(edits.set)];
  const body = { ...(isEmpty(args) ? {} : { args }), ...(isEmpty(set) ? {} : { set }) };
  return { body, wrong };
}

interface Props {
  run: string;
  args: Readonly<Record<string, unknown>>;
  /** Steps whose outputs can be overridden. */
  steps: readonly string[];
  edits: OverrideDrafts;
  onChange: (edits: OverrideDrafts) => void;
}

export function Overrides({ run, args, steps, edits, onChange }: Props) {
  const { wrong } = parseOverrides(edits);
  const drop = (from: OverrideDrafts["args"], name: string) =>
    Object.fromEntries(Object.entries(from).filter(([one]) => one !== name));
  const names = Object.keys(args);
  return (
    <fieldset className="changed">
      <legend>Changed values</legend>
      {names.length === 0 && steps.length === 0 && (
        <p className="muted small">Nothing to change yet.</p>
      )}
      {names.length > 0 && (
        <AddValue
          label="Argument"
          names={names.filter((name) => !(name in edits.args))}
          onAdd={(name) =>
            onChange({ ...edits, args: { ...edits.args, [name]: toJson(args[name]) } })
          }
        />
      )}
      {Object.entries(edits.args).map(([name, text]) => (
        <OverrideField
          key={name}
          name={name}
          text={text}
          wrong={wrong.includes(name)}
          onChange={(next) => onChange({ ...edits, args: { ...edits.args, [name]: next } })}
          onDrop={() => onChange({ ...edits, args: drop(edits.args, name) })}
        />
      ))}
      {steps.length > 0 && (
        <AddOutput
          run={run}
          steps={steps}
          taken={Object.keys(edits.set)}
          onAdd={(path, value) =>
            onChange({ ...edits, set: { ...edits.set, [path]: toJson(value) } })
          }
        />
      )}
      {Object.entries(edits.set).map(([path, text]) => (
        <OverrideField
          key={path}
          name={path}
          text={text}
          wrong={wrong.includes(path)}
          onChange={(next) => onChange({ ...edits, set: { ...edits.set, [path]: next } })}
          onDrop={() => onChange({ ...edits, set: drop(edits.set, path) })}
        />
      ))}
    </fieldset>
  );
}

function AddValue({
  label,
  names,
  onAdd,
}: {
  label: string;
  names: readonly string[];
  onAdd: (name: string) => void;
}) {
  return (
    <select
      aria-label={label}
      value=""
      onChange={(event) => event.target.value !== "" && onAdd(event.target.value)}
    >
      <option value="">Change an {label.toLowerCase()}…</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {visible(name)}
        </option>
      ))}
    </select>
  );
}

interface AddOutputProps {
  run: string;
  steps: readonly string[];
  taken: readonly string[];
  onAdd: (path: string, value: unknown) => void;
}

/** Chooses a step, then one of its outputs. The outputs are loaded when the step is chosen. */
function AddOutput({ run, steps, taken, onAdd }: AddOutputProps) {
  const [step, setStep] = useState("");
  const found = useQuery({
    queryKey: ["run", run, "step", step, "outputs"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/runs/{run}/steps/{step}", { path: { run, step }, signal }))
        .data.node.outputs,
    enabled: step !== "",
  });
  const outputs = (found.data ?? {}) as Record<string, unknown>;
  const open = Object.keys(outputs).filter((name) => !taken.includes(`${step}.${name}`));
  return (
    <div className="bar">
      <select
        aria-label="Step with a changed output"
        value={step}
        onChange={(event) => setStep(event.target.value)}
      >
        <option value="">Change an output of a step…</option>
        {steps.map((one) => (
          <option key={one} value={one}>
            {visible(one)}
          </option>
        ))}
      </select>
      {step !== "" && found.data !== undefined && open.length === 0 && (
        <span className="muted small">No more outputs to change.</span>
      )}
      {step !== "" && open.length > 0 && (
        <AddValue
          label="Output"
          names={open}
          onAdd={(name) => onAdd(`${step}.${name}`, outputs[name])}
        />
      )}
    </div>
  );
}

interface OverrideFieldProps {
  name: string;
  text: string;
  wrong: boolean;
  onChange: (text: string) => void;
  onDrop: () => void;
}

function OverrideField({ name, text, wrong, onChange, onDrop }: OverrideFieldProps) {
  const id = useId();
  return (
    <div className="field">
      <div className="bar">
        <label htmlFor={id} className="grow">
          {visible(name)} <span className="muted small">JSON</span>
        </label>
        <button type="button" className="link small" onClick={onDrop}>
          Reset
        </button>
      </div>
      <textarea
        id={id}
        className="mono"
        rows={Math.min(10, text.split("\n").length + 1)}
        value={text}
        aria-invalid={wrong}
        onChange={(event) => onChange(event.target.value)}
      />
      {wrong && (
        <span role="alert" className="ink-bad small">
          Not valid JSON: text needs quotes.
        </span>
      )}
    </div>
  );
}

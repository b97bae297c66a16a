// Values that are others in a new run: arguments, and what steps are taken to have made.
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/client";
import { isNothing, visible } from "../parts/value";

/** What was typed, by the argument's name or by `STEP.OUTPUT`. */
export interface Edits {
  args: Readonly<Record<string, string>>;
  set: Readonly<Record<string, string>>;
}

export const NO_EDITS: Edits = { args: {}, set: {} };

/** A value as one types it here: always JSON, so that text and number cannot be confused. */
export const typedJson = (value: unknown): string => JSON.stringify(value, null, 1) ?? "null";

/** What is sent, and the names of what cannot be read. */
export function readEdits(edits: Edits): {
  body: { args?: object; set?: object };
  wrong: string[];
} {
  const wrong: string[] = [];
  const read = (typed: Edits["args"]) => {
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
  const body = { ...(isNothing(args) ? {} : { args }), ...(isNothing(set) ? {} : { set }) };
  return { body, wrong };
}

interface Props {
  run: string;
  args: Readonly<Record<string, unknown>>;
  /** Steps whose outputs may be taken to have been others. */
  steps: readonly string[];
  edits: Edits;
  onChange: (edits: Edits) => void;
}

export function Changed({ run, args, steps, edits, onChange }: Props) {
  const { wrong } = readEdits(edits);
  const drop = (from: Edits["args"], name: string) =>
    Object.fromEntries(Object.entries(from).filter(([one]) => one !== name));
  const names = Object.keys(args);
  return (
    <fieldset className="changed">
      <legend>Values that are others</legend>
      {names.length === 0 && steps.length === 0 && (
        <p className="muted small">There is nothing yet that could be another.</p>
      )}
      {names.length > 0 && (
        <Adder
          label="Argument"
          names={names.filter((name) => !(name in edits.args))}
          onAdd={(name) =>
            onChange({ ...edits, args: { ...edits.args, [name]: typedJson(args[name]) } })
          }
        />
      )}
      {Object.entries(edits.args).map(([name, text]) => (
        <Edited
          key={name}
          name={name}
          text={text}
          wrong={wrong.includes(name)}
          onChange={(next) => onChange({ ...edits, args: { ...edits.args, [name]: next } })}
          onDrop={() => onChange({ ...edits, args: drop(edits.args, name) })}
        />
      ))}
      {steps.length > 0 && (
        <OutputAdder
          run={run}
          steps={steps}
          taken={Object.keys(edits.set)}
          onAdd={(place, value) =>
            onChange({ ...edits, set: { ...edits.set, [place]: typedJson(value) } })
          }
        />
      )}
      {Object.entries(edits.set).map(([place, text]) => (
        <Edited
          key={place}
          name={place}
          text={text}
          wrong={wrong.includes(place)}
          onChange={(next) => onChange({ ...edits, set: { ...edits.set, [place]: next } })}
          onDrop={() => onChange({ ...edits, set: drop(edits.set, place) })}
        />
      ))}
    </fieldset>
  );
}

function Adder({
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

interface OutputProps {
  run: string;
  steps: readonly string[];
  taken: readonly string[];
  onAdd: (place: string, value: unknown) => void;
}

/** First a step, then one of its outputs: what they were is asked for only then. */
function OutputAdder({ run, steps, taken, onAdd }: OutputProps) {
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
        aria-label="Step whose output is another"
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
        <span className="muted small">It has no other outputs.</span>
      )}
      {step !== "" && open.length > 0 && (
        <Adder
          label="Output"
          names={open}
          onAdd={(name) => onAdd(`${step}.${name}`, outputs[name])}
        />
      )}
    </div>
  );
}

interface EditedProps {
  name: string;
  text: string;
  wrong: boolean;
  onChange: (text: string) => void;
  onDrop: () => void;
}

function Edited({ name, text, wrong, onChange, onDrop }: EditedProps) {
  const id = useId();
  return (
    <div className="field">
      <div className="bar">
        <label htmlFor={id} className="grow">
          {visible(name)} <span className="muted small">JSON</span>
        </label>
        <button type="button" className="link small" onClick={onDrop}>
          as it was
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
          This is no JSON: text needs quotes.
        </span>
      )}
    </div>
  );
}

// The form that tightens the constraints of an action.
import { useId } from "react";
import { money } from "../parts/format";
import { visible } from "../parts/value";
import { type Constraints, type ConstraintDraft as Draft, MICRO_CENTS } from "./constraints";

interface Props {
  bounds: Constraints;
  tools: readonly string[];
  draft: Draft;
  wrong: Readonly<Record<string, string>>;
  onChange: (draft: Draft) => void;
}

export function ConstraintForm({ bounds, tools, draft, wrong, onChange }: Props) {
  const environments = bounds.environments ?? [];
  const toggle = (name: string, kept: boolean) =>
    onChange({
      ...draft,
      without: kept ? draft.without.filter((one) => one !== name) : [...draft.without, name],
    });
  const most =
    bounds.max_cost === undefined
      ? "no bound is set"
      : `at most ${money(bounds.max_cost / MICRO_CENTS)}`;
  const longest =
    bounds.max_output_tokens === undefined
      ? "no bound is set"
      : `at most ${bounds.max_output_tokens}`;
  return (
    <details className="tighter">
      <summary>Tighten what it may do</summary>
      <div>
        <p className="muted small">
          Bounds can become narrower, never wider. What you agree to is the action with these
          bounds.
        </p>
        <div className="pair-of-fields">
          <TextInput
            name="Most it may cost, in dollars"
            about={most}
            value={draft.cost}
            wrong={wrong.cost}
            onChange={(cost) => onChange({ ...draft, cost })}
          />
          <TextInput
            name="Longest answer, in tokens"
            about={longest}
            value={draft.tokens}
            wrong={wrong.tokens}
            onChange={(tokens) => onChange({ ...draft, tokens })}
          />
        </div>
        {tools.length > 0 && (
          <CheckboxList
            title="Tools it may use"
            names={tools}
            without={draft.without}
            wrong={undefined}
            onToggle={toggle}
          />
        )}
        {environments.length > 0 && (
          <CheckboxList
            title="Environments it may touch"
            names={environments}
            without={draft.without}
            wrong={wrong.environments}
            onToggle={toggle}
          />
        )}
        <TextInput
          name="Further tools it may not use"
          about="by commas"
          value={draft.deny}
          wrong={undefined}
          onChange={(deny) => onChange({ ...draft, deny })}
        />
        {bounds.data_access !== "read_only" && (
          <label className="choice">
            <input
              type="checkbox"
              checked={draft.readOnly}
              onChange={(event) => onChange({ ...draft, readOnly: event.target.checked })}
            />{" "}
            It may only read data
          </label>
        )}
      </div>
    </details>
  );
}

interface TextInputProps {
  name: string;
  about: string;
  value: string;
  wrong: string | undefined;
  onChange: (value: string) => void;
}

function TextInput({ name, about, value, wrong, onChange }: TextInputProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>
        {name} <span className="muted small">{about}</span>
      </label>
      <input
        id={id}
        value={value}
        aria-invalid={wrong !== undefined}
        aria-describedby={wrong === undefined ? undefined : `${id}-wrong`}
        onChange={(event) => onChange(event.target.value)}
      />
      {wrong !== undefined && (
        <span id={`${id}-wrong`} role="alert" className="ink-bad small">
          {wrong}
        </span>
      )}
    </div>
  );
}

interface CheckboxListProps {
  title: string;
  names: readonly string[];
  without: readonly string[];
  wrong: string | undefined;
  onToggle: (name: string, kept: boolean) => void;
}

function CheckboxList({ title, names, without, wrong, onToggle }: CheckboxListProps) {
  return (
    <fieldset className="choices">
      <legend>{title}</legend>
      {names.map((one) => (
        <label key={one}>
          <input
            type="checkbox"
            checked={!without.includes(one)}
            onChange={(event) => onToggle(one, event.target.checked)}
          />
          {visible(one)}
        </label>
      ))}
      {wrong !== undefined && (
        <span role="alert" className="ink-bad small">
          {wrong}
        </span>
      )}
    </fieldset>
  );
}

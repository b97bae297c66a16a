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
    bounds.max_cost === undefined ? "no limit" : `at most ${money(bounds.max_cost / MICRO_CENTS)}`;
  const longest =
    bounds.max_output_tokens === undefined ? "no limit" : `at most ${bounds.max_output_tokens}`;
  return (
    <details className="tighter">
      <summary>Tighten the constraints</summary>
      <div>
        <p className="muted small">
          Constraints can only become stricter. Your approval covers the action with these
          constraints.
        </p>
        <div className="pair-of-fields">
          <TextInput
            name="Maximum cost in dollars"
            about={most}
            value={draft.cost}
            wrong={wrong.cost}
            onChange={(cost) => onChange({ ...draft, cost })}
          />
          <TextInput
            name="Maximum output tokens"
            about={longest}
            value={draft.tokens}
            wrong={wrong.tokens}
            onChange={(tokens) => onChange({ ...draft, tokens })}
          />
        </div>
        {tools.length > 0 && (
          <CheckboxList
            title="Allowed tools"
            names={tools}
            without={draft.without}
            wrong={undefined}
            onToggle={toggle}
          />
        )}
        {environments.length > 0 && (
          <CheckboxList
            title="Allowed environments"
            names={environments}
            without={draft.without}
            wrong={wrong.environments}
            onToggle={toggle}
          />
        )}
        <TextInput
          name="More denied tools"
          about="separated by commas"
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
            Read-only data access
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

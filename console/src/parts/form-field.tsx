// One form field, with the control that fits its declared type.
import { useId } from "react";
import { type Draft, type FieldSpec, toText } from "./form-values";

interface Props {
  name: string;
  field: FieldSpec;
  draft: Draft;
  wrong: string | undefined;
  onChange: (draft: Draft) => void;
}

export function FormField({ name, field, draft, wrong, onChange }: Props) {
  const id = useId();
  const about = [field.description ? `${id}-about` : null, wrong ? `${id}-wrong` : null]
    .filter(Boolean)
    .join(" ");
  const shared = {
    id,
    value: draft,
    "aria-invalid": wrong !== undefined,
    "aria-describedby": about || undefined,
  };
  return (
    <div className="field">
      <label htmlFor={id}>
        {name}{" "}
        <span className="muted small">{field.required ? "required" : (field.type ?? "any")}</span>
      </label>
      <Control field={field} shared={shared} onChange={onChange} />
      {field.description && (
        <span id={`${id}-about`} className="muted small">
          {field.description}
        </span>
      )}
      {wrong !== undefined && (
        <span id={`${id}-wrong`} role="alert" className="ink-bad small">
          {wrong}
        </span>
      )}
    </div>
  );
}

interface ControlProps {
  field: FieldSpec;
  shared: {
    id: string;
    value: string;
    "aria-invalid": boolean;
    "aria-describedby": string | undefined;
  };
  onChange: (draft: Draft) => void;
}

function Control({ field, shared, onChange }: ControlProps) {
  const choices = field.enum ?? (field.type === "boolean" ? [true, false] : []);
  if (choices.length > 0) {
    const word = (choice: unknown) =>
      choice === true ? "yes" : choice === false ? "no" : toText(choice);
    return (
      <select {...shared} onChange={(event) => onChange(event.target.value)}>
        {(!field.required || shared.value === "") && <option value="">–</option>}
        {choices.map((choice) => (
          <option key={toText(choice)} value={toText(choice)}>
            {word(choice)}
          </option>
        ))}
      </select>
    );
  }
  if (field.type === "array" || field.type === "object") {
    return (
      <textarea
        {...shared}
        className="mono"
        rows={3}
        onChange={(event) => onChange(event.target.value)}
      />
    );
  }
  const numeric = field.type === "number" || field.type === "integer";
  return (
    <input
      {...shared}
      inputMode={numeric ? "decimal" : undefined}
      onChange={(event) => onChange(event.target.value)}
    />
  );
}

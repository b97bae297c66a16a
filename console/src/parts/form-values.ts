// Typed values from form fields, by the declared types of arguments and inputs.

export interface FieldSpec {
  type?: string | undefined;
  required?: boolean;
  default?: unknown;
  enum?: readonly unknown[];
  description?: string;
}

export type FieldSpecs = Readonly<Record<string, FieldSpec>>;

/** The text in a field; booleans are "true" and "false". */
export type Draft = string;

/** A value as text in a field. */
export function toText(value: unknown): Draft {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Initial contents of a form: the defaults. */
export function initialDrafts(fields: FieldSpecs): Record<string, Draft> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [name, toText(field.default)]),
  );
}

function parseDraft(field: FieldSpec, draft: Draft): { value: unknown } | { wrong: string } {
  if (field.enum && field.enum.length > 0) {
    const found = field.enum.find((choice) => toText(choice) === draft);
    return found === undefined ? { wrong: "Choose one of the values." } : { value: found };
  }
  const json = (fits: (value: unknown) => boolean, wrong: string) => {
    try {
      const value: unknown = JSON.parse(draft);
      return fits(value) ? { value } : { wrong };
    } catch {
      return { wrong };
    }
  };
  switch (field.type) {
    case "string":
      return { value: draft };
    case "number":
      return json(
        (value) => typeof value === "number" && Number.isFinite(value),
        "Enter a number, such as 12.5.",
      );
    case "integer":
      return json(Number.isSafeInteger, "Enter a whole number.");
    case "boolean":
      return json((value) => typeof value === "boolean", "Choose yes or no.");
    case "array":
      return json(Array.isArray, 'Enter a JSON array, such as ["a", "b"].');
    case "object":
      return json(
        (value) => typeof value === "object" && value !== null && !Array.isArray(value),
        'Enter a JSON object, such as {"a": 1}.',
      );
    default:
      // Any type: JSON if it parses, otherwise the text itself.
      try {
        return { value: JSON.parse(draft) as unknown };
      } catch {
        return { value: draft };
      }
  }
}

/** The values of a form, and error messages by field. */
export function parseDrafts(
  fields: FieldSpecs,
  drafts: Readonly<Record<string, Draft>>,
): { values: Record<string, unknown>; wrong: Record<string, string> } {
  const values: Record<string, unknown> = {};
  const wrong: Record<string, string> = {};
  for (const [name, field] of Object.entries(fields)) {
    const draft = drafts[name] ?? "";
    if (draft.trim() === "") {
      if (field.required) wrong[name] = "This field is required.";
      // Clearing a field with a default means the empty string, not the default.
      else if (field.type === "string" && typeof field.default === "string" && field.default !== "")
        values[name] = "";
      continue;
    }
    const found = parseDraft(field, draft);
    if ("wrong" in found) wrong[name] = found.wrong;
    else values[name] = found.value;
  }
  return { values, wrong };
}

// The values of an action that policies decided on: arguments, where they were seen, labels.
import { visible } from "../parts/value";

/** What is known about an argument. */
export interface ArgumentFacts {
  role?: string;
  seen?: string[];
  mentions?: string[];
  carries?: string[];
  origins?: string[];
  secrecy?: string[];
  truncated?: boolean;
}

/** The facts of a decision, as far as they are about values. */
export interface ValueFacts {
  verb?: string;
  what?: Record<string, unknown>;
  input?: Record<string, unknown>;
  call?: { arguments?: Record<string, ArgumentFacts>; exposed?: boolean };
  flow?: { origins?: string[]; secrecy?: string[]; control?: boolean };
  history?: Record<string, unknown>;
}

const VALUE_CHARS_MAX = 200;

/** A value on one line. */
export function briefValue(value: unknown): string {
  const text = JSON.stringify(value) ?? "not recorded";
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

/** Where a value was seen, and its labels. */
export function argumentWords(facts: ArgumentFacts): string {
  const list = (words: string, names: string[] | undefined) =>
    names && names.length > 0 ? `${words} ${names.join(", ")}` : "";
  return [
    facts.role ? `role ${facts.role}` : "",
    list("seen in", facts.seen),
    list("mentions addresses seen in", facts.mentions),
    list("repeats text of", facts.carries),
    list("from", facts.origins),
    list("contains", facts.secrecy),
    facts.truncated ? "policies do not see all of it" : "",
  ]
    .filter((words) => words !== "")
    .join("; ");
}

/** The name of the tool, gateway or workflow that an action uses. */
export function resourceName(facts: ValueFacts): string {
  const what: unknown = Object.values(facts.what ?? {})[0];
  if (typeof what === "string") return what;
  const name = (what as { name?: unknown } | undefined)?.name;
  return typeof name === "string" ? name : "";
}

/** The rows of the table: arguments, then labels, then history. */
export function valueRows(facts: ValueFacts): [string, string][] {
  const known = facts.call?.arguments ?? {};
  const names = new Set([...Object.keys(facts.input ?? {}), ...Object.keys(known)]);
  const rows: [string, string][] = [...names].map((name) => {
    const words = argumentWords(known[name] ?? {});
    // A path such as `files.id` is a part of the argument above it.
    const value = facts.input?.[name];
    const shown = value === undefined ? "" : briefValue(value);
    return [name, [shown, words].filter((part) => part !== "").join("; ")];
  });
  const { origins = [], secrecy = [], control = false } = facts.flow ?? {};
  if (origins.length > 0) rows.push(["origins", origins.join(", ")]);
  if (secrecy.length > 0) rows.push(["secrecy", secrecy.join(", ")]);
  if (control) rows.push(["control", "a condition about an untrusted value led here"]);
  if (facts.call?.exposed) rows.push(["exposed", "the run has read a stranger's text"]);
  for (const [name, value] of Object.entries(facts.history ?? {}))
    rows.push([name, briefValue(value)]);
  return rows;
}

export function CallValues({ facts }: { facts: ValueFacts }) {
  const rows = valueRows(facts);
  if (rows.length === 0) return null;
  return (
    <dl className="facts small" aria-label="Values that policies see">
      {rows.map(([name, text]) => (
        <div key={name} className="pair">
          <dt>{visible(name)}</dt>
          <dd>{visible(text)}</dd>
        </div>
      ))}
    </dl>
  );
}

// Values as plain text, with invisible characters escaped.

/** Control, formatting and zero-width characters. */
const UNSEEN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is escaped
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes invisible characters, so that a text cannot disguise itself. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Longest text on a page, in characters. */
const SHOWN_MAX = 200_000;

export function formatValue(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const whole = visible(text.slice(0, SHOWN_MAX));
  return text.length > SHOWN_MAX ? `${whole}\n… ${text.length - SHOWN_MAX} more characters` : whole;
}

export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export function Value({ of, label }: { of: unknown; label: string }) {
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: a scrollable box needs a name
    <pre className="value" tabIndex={0} aria-label={label}>
      {formatValue(of)}
    </pre>
  );
}

// Values as text: whatever is in them stays text, and what cannot be seen is made visible.

/** Characters that change how others are shown, or are not shown at all. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** The text with what cannot be seen spelt out. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Longest text that is put on a page at once. */
const SHOWN_MAX = 200_000;

/** A value as text. */
export function formatValue(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const whole = visible(text.slice(0, SHOWN_MAX));
  return text.length > SHOWN_MAX ? `${whole}\n… ${text.length - SHOWN_MAX} characters more` : whole;
}

/** Whether there is nothing to show. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

/** A value in a box of its own. */
export function Value({ of, label }: { of: unknown; label: string }) {
  return (
    <pre className="value" tabIndex={0} aria-label={label}>
      {formatValue(of)}
    </pre>
  );
}

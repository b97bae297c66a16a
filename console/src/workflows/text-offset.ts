// Offsets in a text.

/** Offset of a line and column, both counted from 1; a column is one Unicode character. */
export function offsetOf(text: string, line: number, column: number): number {
  let at = 0;
  for (let passed = 1; passed < line; passed += 1) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  const end = text.indexOf("\n", at);
  const rest = text.slice(at, end < 0 ? text.length : end);
  // A character may take two UTF-16 code units.
  return at + [...rest].slice(0, Math.max(0, column - 1)).join("").length;
}

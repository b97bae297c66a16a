// Places in a text.

/** Where a line and column begin in a text, both from 1; columns count characters as people see them in YAML. */
export function offsetOf(text: string, line: number, column: number): number {
  let at = 0;
  for (let passed = 1; passed < line; passed += 1) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  const end = text.indexOf("\n", at);
  const rest = text.slice(at, end < 0 ? text.length : end);
  // One character may be two units of the text.
  return at + [...rest].slice(0, Math.max(0, column - 1)).join("").length;
}

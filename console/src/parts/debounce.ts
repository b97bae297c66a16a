// Debounced text fields.
import { useEffect, useState } from "react";

/** Text of a field that is committed after a pause in typing, and follows changes from outside. */
export function useDebounced(
  value: string,
  commit: (value: string) => void,
  pauseMs: number,
): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value);
  }
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => commit(typed), pauseMs);
    return () => clearTimeout(timer);
  }, [typed, value, commit, pauseMs]);
  return [typed, setTyped];
}

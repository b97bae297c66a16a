// What is typed into a search field.
import { useEffect, useState } from "react";

/** A word that is typed, told when typing rests; and taken over when it is set elsewhere. */
export function useDebounced(
  value: string,
  commit: (value: string) => void,
): [string, (value: string) => void] {
  const [typed, setTyped] = useState(value);
  const [known, setKnown] = useState(value);
  if (known !== value) {
    setKnown(value);
    setTyped(value);
  }
  useEffect(() => {
    if (typed === value) return;
    const timer = setTimeout(() => commit(typed), 300);
    return () => clearTimeout(timer);
  }, [typed, value, commit]);
  return [typed, setTyped];
}

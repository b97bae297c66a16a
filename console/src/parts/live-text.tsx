// Growing text that stays scrolled to its end.
import { useLayoutEffect, useRef } from "react";
import { formatValue } from "./value";

/** Distance from the end that still counts as the end, in pixels. */
const NEAR = 24;

export function LiveText({ text, label }: { text: string; label: string }) {
  const element = useRef<HTMLPreElement>(null);
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: new text moves the end
  useLayoutEffect(() => {
    const box = element.current;
    if (box && atEnd.current) box.scrollTop = box.scrollHeight;
  }, [text]);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: a scrollable box needs a name
    <pre
      ref={element}
      className="value"
      tabIndex={0}
      aria-label={label}
      onScroll={({ currentTarget: box }) => {
        atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - NEAR;
      }}
    >
      {formatValue(text)}
    </pre>
  );
}

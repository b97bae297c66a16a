// A list that renders only its visible rows.
import { type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";

export const ROW_PX = 34;
/** Rows rendered beyond the edges, so that scrolling shows no gap. */
const OVERSCAN = 12;

interface Props {
  count: number;
  row: (at: number) => ReactNode;
  id: (at: number) => string | number;
  label: string;
  /** Whether the list stays scrolled to its end while rows are added. */
  follow?: boolean;
}

export function VirtualList({ count, row, id, label, follow = false }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [viewport, setSeen] = useState({ top: 0, height: 600 });
  const atEnd = useRef(true);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      atEnd.current = element.scrollTop + element.clientHeight >= element.scrollHeight - ROW_PX;
      setSeen({ top: element.scrollTop, height: element.clientHeight });
    };
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => {
      resized.disconnect();
      element.removeEventListener("scroll", measure);
    };
  }, []);
  useLayoutEffect(() => {
    if (follow && atEnd.current && box.current && count > 0)
      box.current.scrollTop = box.current.scrollHeight;
  }, [count, follow]);
  const first = Math.max(0, Math.floor(viewport.top / ROW_PX) - OVERSCAN);
  const last = Math.min(count, Math.ceil((viewport.top + viewport.height) / ROW_PX) + OVERSCAN);
  const shown: ReactNode[] = [];
  for (let at = first; at < last; at += 1) {
    shown.push(
      <li key={id(at)} style={{ top: at * ROW_PX }} aria-setsize={count} aria-posinset={at + 1}>
        {row(at)}
      </li>,
    );
  }
  return (
    <section className="rows" ref={box} tabIndex={0} aria-label={label}>
      <ol style={{ height: count * ROW_PX }}>{shown}</ol>
    </section>
  );
}

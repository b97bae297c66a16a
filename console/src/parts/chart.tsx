// Small SVG charts.
//
// INVARIANT: a chart has its full height before its data arrives, and a label that describes it.
import { type ReactNode, useEffect, useRef, useState } from "react";

export const CHART_PX = 220;
const SIDE = { left: 58, right: 10, top: 10, bottom: 24 };

/** Number of series colours; the last one is for all other series. */
export const SERIES = 6;

/** CSS class of a series. */
export const seriesClass = (at: number): string => `series-${Math.min(at, SERIES - 1) + 1}`;

/** The next round number. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const unit = 10 ** Math.floor(Math.log10(value));
  const fit = [1, 2, 2.5, 5, 10].find((one) => one * unit >= value * 0.999_999);
  return (fit ?? 10) * unit;
}

/** The drawing area. */
export interface Frame {
  width: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface Props {
  /** Description for screen readers. */
  label: string;
  height?: number;
  children: (frame: Frame) => ReactNode;
}

/** An SVG as wide as its container. */
export function Chart({ label, height = CHART_PX, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => setWidth(element.clientWidth);
    measure();
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    return () => resized.disconnect();
  }, []);
  const frame = {
    width,
    left: SIDE.left,
    right: width - SIDE.right,
    top: SIDE.top,
    bottom: height - SIDE.bottom,
  };
  return (
    <div className="chart" ref={box} style={{ height }}>
      {width > 120 && (
        <svg role="img" aria-label={label} width={width} height={height}>
          {children(frame)}
        </svg>
      )}
    </div>
  );
}

/** Horizontal grid lines with their values. */
export function YAxis({
  frame,
  top,
  write,
}: {
  frame: Frame;
  top: number;
  write: (value: number) => string;
}) {
  return [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const y = frame.bottom - part * (frame.bottom - frame.top);
    return (
      <g key={part}>
        <line className="rule" x1={frame.left} x2={frame.right} y1={y} y2={y} />
        <text className="tick" x={frame.left - 6} y={y + 4} textAnchor="end">
          {write(top * part)}
        </text>
      </g>
    );
  });
}

export interface Bar {
  /** Label on the time axis. */
  label: string;
  /** One value per series, from the bottom up. */
  values: readonly number[];
}

interface BarsProps {
  label: string;
  bars: readonly Bar[];
  names: readonly string[];
  write: (value: number) => string;
}

/** A stacked bar chart. */
export function Bars({ label, bars, names, write }: BarsProps) {
  const sums = bars.map((bar) => bar.values.reduce((sum, value) => sum + value, 0));
  const top = roundUp(Math.max(0, ...sums));
  return (
    <Chart label={label}>
      {(frame) => {
        const step = (frame.right - frame.left) / Math.max(1, bars.length);
        const wide = Math.max(1, Math.min(40, step * 0.72));
        const every = Math.max(1, Math.ceil((bars.length * 52) / (frame.right - frame.left)));
        return (
          <>
            <YAxis frame={frame} top={top} write={write} />
            {bars.map((bar, at) => (
              <StackedBar
                key={bar.label}
                bar={bar}
                names={names}
                write={write}
                x={frame.left + step * at + (step - wide) / 2}
                wide={wide}
                bottom={frame.bottom}
                scale={(frame.bottom - frame.top) / top}
                labelled={at % every === 0}
              />
            ))}
          </>
        );
      }}
    </Chart>
  );
}

interface StackedBarProps {
  bar: Bar;
  names: readonly string[];
  write: (value: number) => string;
  x: number;
  wide: number;
  bottom: number;
  scale: number;
  labelled: boolean;
}

function StackedBar({ bar, names, write, x, wide, bottom, scale, labelled }: StackedBarProps) {
  let below = 0;
  return (
    <g className="pile">
      {bar.values.map((value, at) => {
        const y = bottom - (below + value) * scale;
        below += value;
        if (value <= 0) return null;
        return (
          <rect
            key={names[at]}
            className={seriesClass(at)}
            x={x}
            width={wide}
            y={y}
            height={Math.max(1, value * scale)}
          >
            <title>{`${bar.label}, ${names[at]}: ${write(value)}`}</title>
          </rect>
        );
      })}
      {labelled && (
        <text className="tick" x={x + wide / 2} y={bottom + 16} textAnchor="middle">
          {bar.label}
        </text>
      )}
    </g>
  );
}

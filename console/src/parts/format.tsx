// Formatting of times, durations, money and ids.
import { useEffect, useState } from "react";

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** A duration in at most two units. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  const whole = Math.floor(seconds);
  const [minutes, hours, days] = [
    Math.floor(whole / 60),
    Math.floor(whole / 3_600),
    Math.floor(whole / 86_400),
  ];
  if (days > 0) return `${days} d ${hours % 24} h`;
  if (hours > 0) return `${hours} h ${minutes % 60} min`;
  return `${minutes} min ${whole % 60} s`;
}

/** Dollars; amounts below one dollar have four decimals. */
export function money(dollars: number): string {
  if (dollars === 0) return "$0";
  return `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;
}

const DATE = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  timeZone: "UTC",
});

/** The UTC day: budgets and costs count days in UTC. */
export const dayOf = (ms: number): string => DATE.format(new Date(ms));

export const clock = (at: string): string => CLOCK.format(new Date(at));

/** The current time, updated at an interval. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Sets the title of the page. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Sluice`;
    return () => {
      document.title = "Sluice";
    };
  }, [title]);
}

/** A time relative to now. */
export function Moment({ at }: { at: string }) {
  const away = useNow(10_000) - Date.parse(at);
  const text =
    away >= 0 ? (away < 5_000 ? "just now" : `${duration(away)} ago`) : `in ${duration(-away)}`;
  return (
    <time dateTime={at} title={DAY.format(new Date(at))}>
      {text}
    </time>
  );
}

/** An id or hash with a copy button. */
export function Copyable({ text, shown }: { text: string; shown?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <span className="digest">
      <code title={text}>{shown ?? text}</code>
      {/* The clipboard is available only over TLS or on localhost. */}
      {isSecureContext && (
        <button type="button" className="link small" onClick={copy} title={`Copy ${text}`}>
          {copied ? "copied" : "copy"}
        </button>
      )}
    </span>
  );
}

// Times, durations, money, ids: how they are written.
import { useEffect, useState } from "react";

const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** How long, in at most two units. */
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

/** Dollars, with as many places as small sums need. */
export function money(dollars: number): string {
  if (dollars === 0) return "$0";
  return `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;
}

const DATE = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  timeZone: "UTC",
});

/** The day of a moment, in UTC, as budgets and costs count days. */
export const dayOf = (ms: number): string => DATE.format(new Date(ms));

/** The time of day. */
export const clock = (at: string): string => CLOCK.format(new Date(at));

/** The present, told anew every so often. */
export function useNow(everyMs: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** Names the page, for tabs and bookmarks. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Sluice`;
    return () => {
      document.title = "Sluice";
    };
  }, [title]);
}

/** A moment, as how long ago it was or how far it is off. */
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

/** An id or hash that can be copied. */
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
      {/* Only pages that came over TLS or from this machine may copy. */}
      {isSecureContext && (
        <button type="button" className="link small" onClick={copy} title={`Copy ${text}`}>
          {copied ? "copied" : "copy"}
        </button>
      )}
    </span>
  );
}

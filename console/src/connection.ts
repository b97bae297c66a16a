// Whether the server is there: the stream that the page follows knows.
import { useEffect, useSyncExternalStore } from "react";
import { type ConnectionState, type Event, follow } from "./api/follow";

let current: ConnectionState = "connecting";
const listeners = new Set<() => void>();

/** Says how the page's stream is. */
export function setConnection(state: ConnectionState): void {
  current = state;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** How the page's stream is. */
export const useConnection = (): ConnectionState => useSyncExternalStore(subscribe, () => current);

/** How often a page looks again, at most, while much happens. */
const REFRESH_INTERVAL_MS = 1_000;

/** Calls `look` when something happened in any run that `matters`, at most once a beat. */
export function useRefreshOnEvents(
  isRelevant: (event: Event) => boolean,
  refresh: () => void,
  intervalMs = REFRESH_INTERVAL_MS,
): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const schedule = () => {
      timer ??= setTimeout(() => {
        timer = null;
        refresh();
      }, intervalMs);
    };
    const stop = follow({
      url: "/api/v1/events",
      after: null,
      onEvents: (events) => {
        if (events.some(isRelevant)) schedule();
      },
      onConnection: (link) => {
        // What happened before this stream began is looked up.
        if (link === "live") refresh();
        setConnection(link);
      },
      isLast: () => false,
    });
    return () => {
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [isRelevant, refresh, intervalMs]);
}

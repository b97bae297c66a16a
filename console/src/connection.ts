// State of the connection to the server, taken from the event stream of the page.
import { useEffect, useSyncExternalStore } from "react";
import { type ConnectionState, type Event, follow } from "./api/follow";

let current: ConnectionState = "connecting";
const listeners = new Set<() => void>();

export function setConnection(state: ConnectionState): void {
  current = state;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useConnection = (): ConnectionState => useSyncExternalStore(subscribe, () => current);

/** Shortest time between two refreshes of a page. */
const REFRESH_INTERVAL_MS = 1_000;

/** Follows the events of all runs and calls `refresh` after relevant ones, at most once per interval. */
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
      onConnection: (state) => {
        // Load what happened before this stream started.
        if (state === "live") refresh();
        setConnection(state);
      },
      isLast: () => false,
    });
    return () => {
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [isRelevant, refresh, intervalMs]);
}

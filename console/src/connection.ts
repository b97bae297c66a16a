// Whether the server is there: the stream that the page follows knows.
import { useEffect, useSyncExternalStore } from "react";
import { type Event, follow, type Link } from "./api/follow";

let current: Link = "connecting";
const listeners = new Set<() => void>();

/** Says how the page's stream is. */
export function setLink(link: Link): void {
  current = link;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** How the page's stream is. */
export const useLink = (): Link => useSyncExternalStore(subscribe, () => current);

/** How often a page looks again, at most, while much happens. */
const BEAT_MS = 1_000;

/** Calls `look` when something happened in any run that `matters`, at most once a beat. */
export function useWhatHappens(
  matters: (event: Event) => boolean,
  look: () => void,
  beatMs = BEAT_MS,
): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | null = null;
    const soon = () => {
      timer ??= setTimeout(() => {
        timer = null;
        look();
      }, beatMs);
    };
    const stop = follow({
      url: "/api/v1/events",
      after: null,
      onEvents: (events) => {
        if (events.some(matters)) soon();
      },
      onLink: (link) => {
        // What happened before this stream began is looked up.
        if (link === "live") look();
        setLink(link);
      },
      isLast: () => false,
    });
    return () => {
      stop();
      if (timer) clearTimeout(timer);
    };
  }, [matters, look, beatMs]);
}

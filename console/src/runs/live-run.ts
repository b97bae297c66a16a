// A run with live updates: the last loaded state plus the events since.
//
// INVARIANT: events are kept once and in order. A status from the stream is shown until a state
// arrives that was requested after it; then the update is dropped.
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { request, type Schemas } from "../api/client";
import { type Event, follow } from "../api/follow";
import { setConnection } from "../connection";
import { ended } from "../parts/status";
import { Feed } from "./feed";
import type { RunState } from "./state-diff";
import { StateLoader } from "./state-loader";

export type { Node, RunState } from "./state-diff";
export type RunDetail = Schemas["RunDetail"];

/** Past events loaded at the start; the user loads earlier ones on request. */
const HISTORY = 500;
/** How often a run with sub-workflows is reloaded: a wait in a child run is not its event. */
const CHILDREN_MS = 3000;
const FINAL_EVENTS = new Set(["run.completed", "run.failed", "run.cancelled", "run.timed_out"]);

export interface LiveRun {
  detail: RunDetail | undefined;
  state: RunState | undefined;
  feed: Feed;
  error: unknown;
  /** Reloads the state, and follows the stream again if the run had ended. */
  refresh: () => void;
}

export function useRun(run: string): LiveRun {
  const feed = useMemo(() => new Feed(), []);
  const states = useMemo(() => new StateLoader(run, () => feed.last), [run, feed]);
  useEffect(() => () => states.close(), [states]);
  const [round, setRound] = useState(0);
  const detail = useQuery({
    queryKey: ["run", run, "detail"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/runs/{run}", { path: { run }, signal })).data,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const hasChildren = detail.data?.steps.some((step) => step.kind === "workflow") ?? false;
  const state = useQuery({
    queryKey: ["run", run, "state"],
    refetchInterval: ({ state: { data } }) =>
      hasChildren && data && !ended(data.status) ? CHILDREN_MS : false,
    queryFn: async () => {
      const { state, at } = await states.load();
      feed.dropUpdatesUntil(at);
      return state;
    },
    // The diff already keeps unchanged steps; comparing thousands of them again is slow.
    structuralSharing: false,
    gcTime: 0,
  });
  const whole = detail.data?.run_id;
  const from = detail.data?.last_event_id;
  const refetch = state.refetch;
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new round opens a new stream
  useEffect(() => {
    if (whole === undefined || from === undefined) return;
    const after = feed.last ?? Math.max(0, from - HISTORY);
    const stopLooking = feed.onStale(() => refetch());
    const stop = follow({
      url: `/api/v1/runs/${encodeURIComponent(whole)}/events`,
      after: String(after),
      onEvents: (events) => feed.push(events),
      onConnection: (link) => {
        setConnection(link);
        if (link === "over") feed.flush();
      },
      isLast: (event: Event) => FINAL_EVENTS.has(event.type),
    });
    return () => {
      stop();
      stopLooking();
    };
  }, [whole, from, feed, refetch, round]);
  const version = useSyncExternalStore(feed.subscribe, feed.version);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version stands for the updates
  const merged = useMemo(() => state.data && feed.overlay(state.data), [state.data, feed, version]);
  return {
    detail: detail.data,
    state: merged,
    feed,
    error: detail.error ?? state.error,
    refresh: () => {
      if (merged && ended(merged.status)) setRound((one) => one + 1);
      void refetch();
    },
  };
}

// The list of runs with filters, newest first.
import {
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import { type MouseEvent, useCallback } from "react";
import { request, type Schemas } from "../api/client";
import type { Event } from "../api/follow";
import { useRefreshOnEvents } from "../connection";
import { useDebounced } from "../parts/debounce";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { duration, Moment, useTitle } from "../parts/format";
import { Badge, ended } from "../parts/status";
import { Link, navigate, runPath, useQueryParam } from "../route";
import { usePermission } from "../session";

type Run = Schemas["RunShown"];

const STATUSES = [
  "queued",
  "running",
  "paused",
  "cancelling",
  "recovered",
  "completed",
  "failed",
  "cancelled",
  "timed_out",
];
const SPANS: readonly [string, string, number][] = [
  ["hour", "Last hour", 3_600_000],
  ["day", "Last 24 hours", 86_400_000],
  ["week", "Last 7 days", 7 * 86_400_000],
];

/** Pause in typing before the search starts. */
const PAUSE_MS = 200;

/** Events that change a row of the list. */
const isRelevant = (event: Event) => event.type.startsWith("run.");

function useRuns(text: string, status: string, workflow: string, span: string) {
  return useInfiniteQuery({
    queryKey: ["runs", text, status, workflow, span],
    queryFn: ({ pageParam, signal }) => {
      const wide = SPANS.find(([word]) => word === span)?.[2];
      const since_ms = wide === undefined ? null : Date.now() - wide;
      return request("get", "/api/v1/runs", {
        query: { text, status, workflow, since_ms, limit: 50, cursor: pageParam },
        signal,
      });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.meta.next_cursor,
    placeholderData: keepPreviousData,
  });
}

export function RunList() {
  useTitle("Runs");
  const [text, setText] = useQueryParam("text");
  const [status, setStatus] = useQueryParam("status");
  const [workflow, setWorkflow] = useQueryParam("workflow");
  const [span, setSpan] = useQueryParam("since");
  const [typed, setTyped] = useDebounced(text, setText, PAUSE_MS);
  const runs = useRuns(text, status, workflow, span);
  const workflows = useQuery({
    queryKey: ["workflows"],
    queryFn: async ({ signal }) => (await request("get", "/api/v1/workflows", { signal })).data,
  });
  const queries = useQueryClient();
  useRefreshOnEvents(
    isRelevant,
    useCallback(() => {
      void queries.invalidateQueries({ queryKey: ["runs"] });
      void queries.invalidateQueries({ queryKey: ["approvals"] });
    }, [queries]),
  );
  const rows = runs.data?.pages.flatMap((one) => one.data) ?? [];
  const filtered = text !== "" || status !== "" || workflow !== "" || span !== "";
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">Runs</h1>
        <StartButton />
      </div>
      <search className="filters">
        <input
          type="search"
          aria-label="Search"
          placeholder="Workflow, initiator or id"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <Choice
          label="Status"
          value={status}
          onChange={setStatus}
          all="Any status"
          options={STATUSES}
        />
        <Choice
          label="Workflow"
          value={workflow}
          onChange={setWorkflow}
          all="All workflows"
          options={workflows.data?.map((one) => one.name) ?? (workflow ? [workflow] : [])}
        />
        <select aria-label="Started" value={span} onChange={(event) => setSpan(event.target.value)}>
          <option value="">Any time</option>
          {SPANS.map(([word, label]) => (
            <option key={word} value={word}>
              {label}
            </option>
          ))}
        </select>
      </search>
      {runs.error && <ErrorMessage error={runs.error} />}
      <div className="card table">
        {runs.isPending && !runs.error && <Loading what="runs" />}
        {runs.data && rows.length === 0 && (
          <Empty title={filtered ? "No run matches" : "No runs yet"}>
            {!filtered && <span>Start a workflow to see its run here.</span>}
          </Empty>
        )}
        {rows.length > 0 && <RunTable rows={rows} />}
      </div>
      {runs.hasNextPage && (
        <div className="bar">
          <button
            type="button"
            onClick={() => runs.fetchNextPage()}
            disabled={runs.isFetchingNextPage}
          >
            {runs.isFetchingNextPage ? "Loading…" : "Older runs"}
          </button>
        </div>
      )}
    </div>
  );
}

function StartButton() {
  return usePermission("workflow:execute") ? (
    <Link href="/workflows" className="button primary">
      Start a workflow
    </Link>
  ) : null;
}

interface ChoiceProps {
  label: string;
  value: string;
  all: string;
  options: readonly string[];
  onChange: (value: string) => void;
}

function Choice({ label, value, all, options, onChange }: ChoiceProps) {
  return (
    <select aria-label={label} value={value} onChange={(event) => onChange(event.target.value)}>
      <option value="">{all}</option>
      {options.map((one) => (
        <option key={one} value={one}>
          {one.replaceAll("_", " ")}
        </option>
      ))}
    </select>
  );
}

function RunTable({ rows }: { rows: readonly Run[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th>Status</th>
          <th>Workflow</th>
          <th>Run</th>
          <th>Started by</th>
          <th>Started</th>
          <th className="right">Duration</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((run) => (
          <RunRow key={run.run_id} run={run} />
        ))}
      </tbody>
    </table>
  );
}

function RunRow({ run }: { run: Run }) {
  const href = runPath(run.run_id);
  const took = run.completed_at ? Date.parse(run.completed_at) - Date.parse(run.started_at) : null;
  // The link in the row handles its own clicks, also those with a modifier key.
  const openUnlessLink = (event: MouseEvent<HTMLTableRowElement>) => {
    const isLink = event.target instanceof Element && event.target.closest("a") !== null;
    if (!isLink) navigate(href);
  };
  return (
    <tr data-href={href} onClick={openUnlessLink}>
      <td>
        <Badge status={run.status} />
      </td>
      <td>
        <Link href={href}>{run.workflow}</Link>
        {run.version != null && <span className="muted"> v{run.version}</span>}
      </td>
      <td className="mono muted" title={run.run_id}>
        {run.run_id.slice(0, 20)}…
      </td>
      <td>{run.initiator}</td>
      <td>
        <Moment at={run.started_at} />
      </td>
      <td className="right">{took === null ? (ended(run.status) ? "" : "–") : duration(took)}</td>
    </tr>
  );
}

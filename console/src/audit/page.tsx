// The audit log, newest first, and the state of its chain.
import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { request, type Schemas } from "../api/client";
import type { Event } from "../api/follow";
import { useRefreshOnEvents } from "../connection";
import { useDebounced } from "../parts/debounce";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { Copyable, clock, useTitle } from "../parts/format";
import { words } from "../parts/status";
import { isEmpty, Value, visible } from "../parts/value";
import { Link, runPath, useQueryParam } from "../route";
import { usePermission } from "../session";
import { Verification } from "./verification";

type Fact = Schemas["AuditFact"];

const CATEGORIES = [
  "governance",
  "execution",
  "lifecycle",
  "security",
  "configuration",
  "deploy",
  "routing",
];
const SPANS: readonly [string, string, number][] = [
  ["hour", "Last hour", 3_600_000],
  ["day", "Last 24 hours", 86_400_000],
  ["week", "Last 7 days", 7 * 86_400_000],
];

/** Pause in typing before a filter applies. */
const PAUSE_MS = 300;

/** Streamed text and log lines are not in the audit log. */
const isRelevant = (event: Event) =>
  event.type !== "node.stream.delta" && event.type !== "node.log";

interface Filter {
  category: string;
  type: string;
  actor: string;
  run: string;
  span: string;
}

function useFacts(filter: Filter) {
  return useInfiniteQuery({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam, signal }) => {
      const { span, ...typed } = filter;
      const rest = Object.fromEntries(
        Object.entries(typed).map(([name, word]) => [name, word.trim()]),
      );
      const wide = SPANS.find(([word]) => word === span)?.[2];
      const since_ms = wide === undefined ? null : Date.now() - wide;
      return request("get", "/api/v1/audit", {
        query: { ...rest, since_ms, before: pageParam, limit: 100 },
        signal,
      });
    },
    initialPageParam: "now",
    getNextPageParam: (last) => last.meta.next_cursor,
    placeholderData: keepPreviousData,
    // Old entries do not change; new ones are loaded on request.
    staleTime: Number.POSITIVE_INFINITY,
  });
}

export default function Audit() {
  useTitle("Audit");
  const may = usePermission("audit:read");
  if (!may) return <Empty title="Your role cannot view the audit log" />;
  return (
    <div className="page">
      <Facts />
    </div>
  );
}

function Facts() {
  const queries = useQueryClient();
  const [category] = useQueryParam("category");
  const [type] = useQueryParam("type");
  const [actor] = useQueryParam("actor");
  const [run] = useQueryParam("run");
  const [span] = useQueryParam("since");
  const facts = useFacts({ category, type, actor, run, span });
  const [news, setNews] = useState(false);
  const looked = useRef(false);
  useRefreshOnEvents(
    isRelevant,
    useCallback(() => {
      // The first refresh comes when the stream opens, not from an event.
      if (looked.current) setNews(true);
      looked.current = true;
    }, []),
  );
  const rows = facts.data?.pages.flatMap((one) => one.data) ?? [];
  const filtered = [category, type, actor, run, span].some((word) => word !== "");
  const renew = () => {
    setNews(false);
    void queries.resetQueries({ queryKey: ["audit"] });
  };
  return (
    <>
      <div className="bar">
        <h1 className="grow">Audit</h1>
        <span className="muted" role="status">
          {news && "New entries available."}
        </span>
        <button type="button" onClick={renew}>
          {news ? "Show the newest" : "Refresh"}
        </button>
      </div>
      <Verification />
      <Filters />
      {run !== "" && !facts.error && (
        <div className="bar">
          <a
            className="button"
            href={`/api/v1/runs/${encodeURIComponent(run)}/audit`}
            download={`${run}.packet`}
          >
            Download the audit packet of this run
          </a>
          <span className="muted small">can be verified offline, without this server</span>
        </div>
      )}
      {facts.error && <ErrorMessage error={facts.error} />}
      <div className="card">
        {facts.isPending && !facts.error && <Loading what="the audit log" />}
        {facts.data && rows.length === 0 && !facts.hasNextPage && (
          <Empty title={filtered ? "No entries match" : "No entries yet"} />
        )}
        {facts.data && rows.length === 0 && facts.hasNextPage && (
          <Empty title="No match among the newest entries; load older ones" />
        )}
        {rows.length > 0 && <List rows={rows} />}
      </div>
      {facts.hasNextPage && (
        <div className="bar">
          <button
            type="button"
            onClick={() => facts.fetchNextPage()}
            disabled={facts.isFetchingNextPage}
          >
            {facts.isFetchingNextPage ? "Loading…" : "Older"}
          </button>
        </div>
      )}
    </>
  );
}

/** A search field bound to a query parameter. */
function QueryParamInput({ word, label, hint }: { word: string; label: string; hint: string }) {
  const [value, setValue] = useQueryParam(word);
  const [typed, setTyped] = useDebounced(value, setValue, PAUSE_MS);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={hint}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
    />
  );
}

function Filters() {
  const [category, setCategory] = useQueryParam("category");
  const [span, setSpan] = useQueryParam("since");
  return (
    <search className="filters audit-filters">
      <select
        aria-label="Category"
        value={category}
        onChange={(event) => setCategory(event.target.value)}
      >
        <option value="">All categories</option>
        {CATEGORIES.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <QueryParamInput word="type" label="Type" hint="Type, e.g. step_completed" />
      <QueryParamInput word="actor" label="Actor" hint="Actor" />
      <QueryParamInput word="run" label="Run" hint="Run" />
      <select aria-label="When" value={span} onChange={(event) => setSpan(event.target.value)}>
        <option value="">Any time</option>
        {SPANS.map(([word, label]) => (
          <option key={word} value={word}>
            {label}
          </option>
        ))}
      </select>
    </search>
  );
}

/** Days in the user's time zone, as the times next to them. */
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });

/** Entries without a hash may be equal in every field: add their position. */
const key = (fact: Fact, at: number) =>
  fact.hash ?? `${fact.at} ${fact.type} ${fact.resource_id} ${at}`;

function List({ rows }: { rows: readonly Fact[] }) {
  return (
    <ul className="audit">
      {rows.map((fact, at) => {
        const day = DAY.format(new Date(fact.at));
        const before = rows[at - 1];
        return (
          <li key={key(fact, at)}>
            {(before === undefined || DAY.format(new Date(before.at)) !== day) && (
              <h2 className="day">{day}</h2>
            )}
            <FactRow fact={fact} />
          </li>
        );
      })}
    </ul>
  );
}

function FactRow({ fact }: { fact: Fact }) {
  const [open, setOpen] = useState(false);
  const what =
    fact.resource_type === "run"
      ? (fact.step ?? "the run")
      : `${fact.resource_type} ${fact.resource_id}`;
  return (
    <details className="fact" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <time dateTime={fact.at} title={fact.at}>
          {clock(fact.at)}
        </time>
        <span className={`category category-${fact.category}`}>{fact.category}</span>
        <strong>{words(visible(fact.type))}</strong>
        <span className="cut">
          {visible(what)}
          {fact.resource_type === "run" && (
            <span className="muted mono"> {fact.resource_id.slice(0, 16)}…</span>
          )}
        </span>
        <span className="muted cut who">{fact.actor ? `by ${visible(fact.actor)}` : ""}</span>
      </summary>
      {open && <Detail fact={fact} />}
    </details>
  );
}

function Detail({ fact }: { fact: Fact }) {
  const step = fact.step == null ? "" : `&step=${encodeURIComponent(fact.step)}`;
  return (
    <div className="fact-detail">
      <dl className="facts">
        <dt>When</dt>
        <dd>{fact.at}</dd>
        <dt>Resource</dt>
        <dd>
          {fact.resource_type === "run" ? (
            <>
              <Link href={`${runPath(fact.resource_id)}?view=events${step}`}>
                {fact.resource_id}
              </Link>
              {fact.event_id != null && `, event ${fact.event_id}`} ·{" "}
              <Link href={`/audit?run=${encodeURIComponent(fact.resource_id)}`}>only this run</Link>
            </>
          ) : (
            visible(`${fact.resource_type} ${fact.resource_id}`)
          )}
        </dd>
        {fact.hash && (
          <>
            <dt>Hash</dt>
            <dd>
              <Copyable text={fact.hash} />
            </dd>
          </>
        )}
      </dl>
      {!isEmpty(fact.detail) && <Value of={fact.detail} label={`Detail of ${fact.type}`} />}
    </div>
  );
}

// Costs over time, by workflow, agent or model.
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { useRefreshOnEvents } from "../connection";
import { Bars, SERIES, seriesClass } from "../parts/chart";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { dayOf, money, useNow, useTitle } from "../parts/format";
import { visible } from "../parts/value";
import { Link, useQueryParam } from "../route";
import { usePermission } from "../session";
import {
  type Bucket,
  type By,
  type Cost,
  seriesOf,
  starts,
  type Total,
  totals,
  values,
} from "./series";

const DAY_MS = 86_400_000;
const SPANS: readonly [string, string, number, Bucket][] = [
  ["day", "Last 24 hours", DAY_MS, "hour"],
  ["week", "Last 7 days", 6 * DAY_MS, "day"],
  ["month", "Last 30 days", 29 * DAY_MS, "day"],
  ["quarter", "Last 13 weeks", 90 * DAY_MS, "week"],
  ["year", "Last 12 months", 335 * DAY_MS, "month"],
];
const BYS: readonly By[] = ["workflow", "agent", "model"];

const isRelevant = (event: Event) => event.type === "node.completed";
/** Shortest time between two reloads. */
const REFRESH_INTERVAL_MS = 5_000;
const HOUR = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
});
const MONTH = new Intl.DateTimeFormat(undefined, {
  month: "short",
  year: "2-digit",
  timeZone: "UTC",
});

/** Short label of a bucket. */
function short(bucket: Bucket, at: number): string {
  if (bucket === "hour") return `${HOUR.format(at)}:00`;
  return bucket === "month" ? MONTH.format(at) : dayOf(at);
}

export default function CostPage() {
  useTitle("Cost");
  const may = usePermission("governance:read");
  if (!may) return <Empty title="Your role cannot view costs" />;
  return <Costs />;
}

function Costs() {
  const queries = useQueryClient();
  const [word, setWord] = useQueryParam("span");
  const [byWord, setBy] = useQueryParam("by");
  const by = BYS.find((one) => one === byWord) ?? "workflow";
  const [span, , wide, bucket] =
    SPANS.find(([one]) => one === word) ?? (SPANS[1] as (typeof SPANS)[number]);
  const now = useNow(60_000);
  const [from] = starts(bucket, now - wide, now);
  const costs = useQuery({
    queryKey: ["cost", by, bucket, from],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/cost", { query: { bucket, by, since_ms: from }, signal }))
        .data,
    placeholderData: keepPreviousData,
  });
  useRefreshOnEvents(
    isRelevant,
    useCallback(() => void queries.invalidateQueries({ queryKey: ["cost"] }), [queries]),
    REFRESH_INTERVAL_MS,
  );
  return (
    <div className="page">
      <div className="bar">
        <h1 className="grow">Cost</h1>
        <select
          className="fit"
          aria-label="By"
          value={by}
          onChange={(event) => setBy(event.target.value === "workflow" ? "" : event.target.value)}
        >
          {BYS.map((one) => (
            <option key={one} value={one}>
              By {one}
            </option>
          ))}
        </select>
        <select
          className="fit"
          aria-label="Time range"
          value={span}
          onChange={(event) => setWord(event.target.value === "week" ? "" : event.target.value)}
        >
          {SPANS.map(([one, label]) => (
            <option key={one} value={one}>
              {label}
            </option>
          ))}
        </select>
      </div>
      {costs.error && <ErrorMessage error={costs.error} />}
      {costs.isPending && !costs.error && (
        <div className="card">
          <Loading what="costs" />
        </div>
      )}
      {costs.data && (
        <CostReport
          rows={costs.data}
          by={by}
          bucket={bucket}
          buckets={starts(bucket, now - wide, now)}
        />
      )}
    </div>
  );
}

interface CostReportProps {
  rows: readonly Cost[];
  by: By;
  bucket: Bucket;
  buckets: readonly number[];
}

function CostReport({ rows, by, bucket, buckets }: CostReportProps) {
  const sums = totals(rows, by);
  const names = seriesOf(sums, SERIES);
  const table = values(rows, by, names, buckets);
  const all = sums.reduce((sum, one) => sum + one.cost, 0);
  if (sums.length === 0) {
    return (
      <div className="card">
        <Empty title="No costs in this time range">
          <span>Costs appear here as steps complete.</span>
        </Empty>
      </div>
    );
  }
  const bars = buckets.map((at, index) => ({
    label: short(bucket, at),
    values: table[index] ?? [],
  }));
  return (
    <div className="costs">
      <section className="card cost-chart" aria-label="Over time">
        <p>
          <strong className="sum">{money(all)}</strong>{" "}
          <span className="muted">in total, by {bucket} (UTC)</span>
        </p>
        <Bars
          label={`Cost by ${bucket} and ${by}, ${money(all)} in total`}
          bars={bars}
          names={names}
          write={money}
        />
        <ul className="legend">
          {names.map((name, at) => (
            <li key={name}>
              <i className={seriesClass(at)} /> {visible(name)}
            </li>
          ))}
        </ul>
      </section>
      <section className="card table" aria-label={`By ${by}`}>
        <CostTable sums={sums} all={all} by={by} names={names} />
      </section>
    </div>
  );
}

const COUNT = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });

function CostTable({
  sums,
  all,
  by,
  names,
}: {
  sums: readonly Total[];
  all: number;
  by: By;
  names: readonly string[];
}) {
  return (
    <table className="sums-table">
      <thead>
        <tr>
          <th>{by}</th>
          <th className="right">Cost</th>
          <th className="right">Share</th>
          <th className="right">Tokens in / out</th>
          <th className="right">Steps</th>
        </tr>
      </thead>
      <tbody>
        {sums.map((one) => {
          const at = names.indexOf(one.name);
          return (
            <tr key={one.name}>
              <td className="wraps">
                <i className={`dot ${seriesClass(at < 0 ? SERIES - 1 : at)}`} />{" "}
                {by === "workflow" ? (
                  <Link href={`/runs?workflow=${encodeURIComponent(one.name)}`}>
                    {visible(one.name)}
                  </Link>
                ) : (
                  visible(one.name)
                )}
              </td>
              <td className="right">{money(one.cost)}</td>
              <td className="right">{all > 0 ? `${((100 * one.cost) / all).toFixed(0)} %` : ""}</td>
              <td className="right">
                {COUNT.format(one.input)} / {COUNT.format(one.output)}
              </td>
              <td className="right">{COUNT.format(one.steps)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

// Budgets: their caps, what is spent, and the burn-down.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { request } from "../api/client";
import { Chart, YAxis } from "../parts/chart";
import { Confirm } from "../parts/confirm";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { clock, dayOf, Moment, money, useNow } from "../parts/format";
import { Badge, type Tone } from "../parts/status";
import { visible } from "../parts/value";
import { usePermission } from "../session";
import { costDimension, exhaustedAtMs, periodSpan, points } from "./burn-down";
import { type Budget, useBudgets } from "./registry";

const HOUR_MS = 3_600_000;
const PERIODS: Readonly<Record<Budget["period"], string>> = {
  daily: "per day",
  weekly: "per week",
  monthly: "per month",
  total: "in total",
};

export function Budgets() {
  const budgets = useBudgets();
  if (budgets.error && !budgets.data) return <ErrorMessage error={budgets.error} />;
  if (!budgets.data) return <Loading what="budgets" />;
  if (budgets.data.length === 0) {
    return (
      <div className="card">
        <Empty title="No budgets">
          <span>Only the cost limits of steps, roles and agents apply.</span>
          <code>sluice budgets set everything scope=global period=monthly amount_cents=10000</code>
        </Empty>
      </div>
    );
  }
  return (
    <ul className="budgets">
      {budgets.data.map((one) => (
        <li key={one.id}>
          <BudgetCard budget={one} />
        </li>
      ))}
    </ul>
  );
}

/** The state of a budget as a badge. */
function state(budget: Budget): [string, Tone] {
  const cap = budget.amount_cents / 100;
  const part = cap > 0 ? (Number(budget.spent) + Number(budget.reserved)) / cap : 1;
  if (budget.enabled === false) return ["disabled", "calm"];
  if (budget.closed) return ["closed", "bad"];
  if (part >= 1) return ["exhausted", "bad"];
  if (part >= 0.8) return ["over 80 %", "wait"];
  if (part >= 0.5) return ["over 50 %", "busy"];
  return ["open", "good"];
}

function BudgetCard({ budget }: { budget: Budget }) {
  const cap = budget.amount_cents / 100;
  const [spent, reserved, overrun] = [
    Number(budget.spent),
    Number(budget.reserved),
    Number(budget.overrun),
  ];
  const [word, tone] = state(budget);
  const whose =
    budget.scope === "global"
      ? "everything"
      : `${budget.of === undefined ? "any " : ""}${budget.scope} ${budget.of ?? ""}`.trim();
  return (
    <article className="card budget" aria-label={`Budget ${budget.id}`}>
      <div className="bar">
        <h2>{visible(budget.id)}</h2>
        <Badge status={word} as={tone} />
        <span className="muted grow">
          {money(cap)} {PERIODS[budget.period]} for {visible(whose)}
        </span>
        <BudgetActions budget={budget} />
      </div>
      <Meter cap={cap} spent={spent} reserved={reserved} />
      <dl className="sums">
        <Sum name="Spent" value={money(spent)} />
        <Sum name="Reserved" value={money(reserved)} />
        <Sum name="Left" value={money(Number(budget.left))} />
        {overrun > 0 && <Sum name="Overrun" value={money(overrun)} />}
        {budget.period !== "total" && <ResetsAt budget={budget} />}
      </dl>
      <BurnDown budget={budget} />
    </article>
  );
}

const Sum = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
);

function ResetsAt({ budget }: { budget: Budget }) {
  const now = useNow(60_000);
  return (
    <div>
      <dt>Resets</dt>
      <dd>
        <Moment at={new Date(periodSpan(budget.period, now).toMs).toISOString()} />
      </dd>
    </div>
  );
}

/** Spent and reserved against the cap, with marks where alerts are raised. */
function Meter({ cap, spent, reserved }: { cap: number; spent: number; reserved: number }) {
  const part = (value: number) => `${Math.min(100, cap > 0 ? (100 * value) / cap : 100)}%`;
  const label = `${money(spent)} spent and ${money(reserved)} reserved of ${money(cap)}`;
  return (
    <div className="meter" role="img" aria-label={label} title={label}>
      <i className={spent >= cap ? "full" : "spent"} style={{ width: part(spent) }} />
      <i
        className="reserved"
        style={{ left: part(spent), width: part(Math.max(0, Math.min(reserved, cap - spent))) }}
      />
      <b style={{ left: "50%" }} />
      <b style={{ left: "80%" }} />
    </div>
  );
}

/** How much was left, from the start of the period until now. */
function BurnDown({ budget }: { budget: Budget }) {
  const now = useNow(60_000);
  const by = costDimension(budget);
  const bucket = budget.period === "daily" || budget.period === "weekly" ? "hour" : "day";
  const { fromMs, toMs } = periodSpan(budget.period, now);
  const costs = useQuery({
    queryKey: ["burn", by, bucket, fromMs],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/cost", { query: { bucket, by, since_ms: fromMs }, signal }))
        .data,
    enabled: by !== null,
  });
  if (by === null)
    return (
      <p className="muted small">
        Costs are not recorded by {budget.scope}, so there is no burn-down chart.
      </p>
    );
  if (costs.error && !costs.data) return <ErrorMessage error={costs.error} />;
  const line = points(budget, costs.data ?? [], bucket === "hour" ? HOUR_MS : 24 * HOUR_MS, now);
  const cap = budget.amount_cents / 100;
  const end = exhaustedAtMs(budget, now);
  return (
    <>
      <Chart
        height={150}
        label={`Left of ${budget.id}: from ${money(line[0]?.left ?? cap)} to ${money(line.at(-1)?.left ?? cap)}`}
      >
        {(frame) => {
          const x = (atMs: number) =>
            frame.left +
            ((atMs - fromMs) / Math.max(1, toMs - fromMs)) * (frame.right - frame.left);
          const y = (left: number) =>
            frame.bottom -
            Math.max(0, Math.min(1, cap > 0 ? left / cap : 0)) * (frame.bottom - frame.top);
          let path = "";
          for (const [at, one] of line.entries()) {
            path += `${at === 0 ? "M" : "L"}${x(one.atMs)} ${y(one.left)}`;
          }
          return (
            <>
              <YAxis frame={frame} top={cap} write={money} />
              <path className="burnt" d={`${path}V${frame.bottom}H${frame.left}Z`} />
              {budget.period !== "total" && (
                <line
                  className="even"
                  x1={frame.left}
                  y1={frame.top}
                  x2={frame.right}
                  y2={frame.bottom}
                />
              )}
              <path className="burn" d={path} />
              <line className="now" x1={x(now)} x2={x(now)} y1={frame.top} y2={frame.bottom} />
              <text className="tick" x={frame.left} y={frame.bottom + 16}>
                {dayOf(fromMs)}
              </text>
              <text className="tick" x={frame.right} y={frame.bottom + 16} textAnchor="end">
                {budget.period === "total" ? "now" : dayOf(toMs)}
              </text>
            </>
          );
        }}
      </Chart>
      <p className={`small ${end === null ? "muted" : "ink-wait"}`}>
        {end === null
          ? budget.period === "total"
            ? "Amount left over the last 30 days."
            : "Amount left, compared with an even pace (dashed)."
          : `At this rate the budget is exhausted by ${budget.period === "daily" ? clock(new Date(end).toISOString()) : dayOf(end)}.`}
      </p>
    </>
  );
}

function BudgetActions({ budget }: { budget: Budget }) {
  const may = usePermission("governance:write");
  const queries = useQueryClient();
  const id = useId();
  const [dialog, setDialog] = useState<"cap" | "reopen" | null>(null);
  const [draft, setDraft] = useState("");
  if (!may) return null;
  const path = { name: budget.id };
  const act = async () => {
    if (dialog === "reopen") await request("post", "/api/v1/budgets/{name}/reopen", { path });
    else {
      const dollars = Number(draft);
      if (draft.trim() === "" || !Number.isFinite(dollars) || dollars < 0)
        throw new Error("the cap must be an amount in dollars, such as 150 or 12.50");
      await request("patch", "/api/v1/budgets/{name}", {
        path,
        body: { amount_cents: Number((dollars * 100).toFixed(6)) },
      });
    }
    await queries.invalidateQueries({ queryKey: ["budgets"] });
  };
  return (
    <span className="bar">
      {budget.closed && (
        <button type="button" onClick={() => setDialog("reopen")}>
          Accept the overrun…
        </button>
      )}
      <button
        type="button"
        onClick={() => {
          setDraft(String(budget.amount_cents / 100));
          setDialog("cap");
        }}
      >
        Change the cap…
      </button>
      {dialog && (
        <Confirm
          title={dialog === "cap" ? `Cap of ${budget.id}` : `Accept the overrun of ${budget.id}?`}
          act={dialog === "cap" ? "Set the cap" : "Accept the overrun"}
          onClose={() => setDialog(null)}
          onAct={act}
        >
          {dialog === "cap" ? (
            <div className="field">
              <label htmlFor={id}>Dollars, {PERIODS[budget.period]}</label>
              <input
                id={id}
                inputMode="decimal"
                value={draft}
                onChange={(event) => setDraft(event.target.value)}
              />
              <span className="muted small">Steps that wait for budget are evaluated again.</span>
            </div>
          ) : (
            <p>
              {money(Number(budget.overrun))} was spent beyond the cap. Accepting it reopens the
              budget.
            </p>
          )}
        </Confirm>
      )}
    </span>
  );
}

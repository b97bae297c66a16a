// The result of a dry run: a summary, and the expected decision of each step.
import type { Schemas } from "../api/client";
import { Badge, words } from "../parts/status";
import { visible } from "../parts/value";
import { type GateDecision, Gates } from "../runs/decision";

export type Forecast = Schemas["ForecastShown"];
type Step = Forecast["steps"][number];

/** Most steps in the list; the graph shows all of them. */
const LISTED_MAX = 200;

const STATUS: Readonly<Record<string, string>> = {
  send: "would_be_sent",
  ask: "would_need_approval",
  stop: "would_be_stopped",
  skip: "would_be_skipped",
  fail: "would_fail",
  depends: "not_decided_yet",
};

const statusOf = (step: Step): string => STATUS[step.outcome] ?? "not_known";

/** Expected status of each step, for the graph. */
export function forecastStatuses(forecast: Forecast | null): ReadonlyMap<string, string> | null {
  return forecast && new Map(forecast.steps.map((step) => [step.node_id, statusOf(step)]));
}

/** Counts of steps by expected status. */
function summary(steps: readonly Step[]): string {
  const counts = new Map<string, number>();
  for (const step of steps) counts.set(statusOf(step), (counts.get(statusOf(step)) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${words(status)}`).join(", ");
}

export function ForecastCard({ forecast }: { forecast: Forecast }) {
  const { steps } = forecast;
  return (
    <section className="card forecast" aria-label="Dry run">
      <h2>Dry run: expected decisions</h2>
      <p role="status">
        <strong>{summary(steps)}.</strong> Nothing was started. The outputs of steps are not known
        yet and may change these decisions.
      </p>
      {forecast.gateways.length > 0 && (
        <p className="bar small">
          <span className="muted">Gateways:</span>
          {forecast.gateways.map((one) => (
            <span key={one.name} className="bar">
              {visible(one.name)} <Badge status={one.health} />
            </span>
          ))}
        </p>
      )}
      <ul className="foreseen">
        {steps.slice(0, LISTED_MAX).map((step) => (
          <li key={step.node_id}>
            <StepLine step={step} />
          </li>
        ))}
      </ul>
      {steps.length > LISTED_MAX && (
        <p className="muted small">{steps.length - LISTED_MAX} more steps; the graph shows all.</p>
      )}
      {!forecast.whole && (
        <p className="note">Some steps cannot be evaluated without running others.</p>
      )}
    </section>
  );
}

/** Outcomes that need their reason shown. */
const WHY = new Set(["skip", "fail"]);

/** The reason without its prefix: the heading already says that this is a dry run. */
const withoutPrefix = (reason: string | null | undefined) =>
  reason?.replace(/^(the run only looks|dry run): /, "") ?? "";

function StepLine({ step }: { step: Step }) {
  const open = step.outcome === "depends";
  const hint = open
    ? "Its condition depends on outputs of earlier steps."
    : "Only if the outputs of earlier steps let it run.";
  const head = (
    <>
      <span className="grow cut">{visible(step.node_id)}</span>
      {step.gateway && <span className="muted small">{visible(step.gateway)}</span>}
      <Badge status={statusOf(step)} />
      {step.conditional && <p className="muted small">{hint}</p>}
    </>
  );
  const decision = step.decision as GateDecision | null | undefined;
  if (!decision) {
    return (
      <div className="bar">
        {head}
        {WHY.has(step.outcome) && step.reason && (
          <p className="muted small">{visible(withoutPrefix(step.reason))}</p>
        )}
      </div>
    );
  }
  return (
    <details open={step.outcome === "stop"}>
      <summary className="bar">{head}</summary>
      <Gates of={decision} />
    </details>
  );
}

// Gateways: their settings, and their health now and over the last day.
import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Schemas } from "../api/client";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { clock, Moment, useNow } from "../parts/format";
import { Badge, tone } from "../parts/status";
import { visible } from "../parts/value";
import { usePermission } from "../session";
import { type Gateway, useGateways } from "./registry";

type Health = Schemas["HealthShown"];

/** The server pings gateways once a minute; a shorter interval shows nothing new. */
const REFRESH_INTERVAL_MS = 30_000;
/** Most gateways on the page: each one costs a request for its health. */
const SHOWN_MAX = 100;
const DAY_MS = 86_400_000;

export function Gateways() {
  const gateways = useGateways();
  const shown = (gateways.data ?? []).slice(0, SHOWN_MAX);
  const health = useQueries({
    queries: shown.map((one) => ({
      queryKey: ["health", one.id],
      queryFn: async ({ signal }: { signal: AbortSignal }) =>
        (await request("get", "/api/v1/gateways/{name}/health", { path: { name: one.id }, signal }))
          .data,
      refetchInterval: REFRESH_INTERVAL_MS,
    })),
  });
  if (gateways.error && !gateways.data) return <ErrorMessage error={gateways.error} />;
  if (!gateways.data) return <Loading what="gateways" />;
  if (shown.length === 0) {
    return (
      <div className="card">
        <Empty title="No gateways yet">
          <code>sluice apply -f FILE</code>
        </Empty>
      </div>
    );
  }
  return (
    <ul className="gateways">
      {shown.map((one, at) => (
        <li key={one.id}>
          <GatewayCard
            gateway={one}
            health={health[at]?.data ?? null}
            error={health[at]?.error ?? null}
          />
        </li>
      ))}
      {gateways.data.length > SHOWN_MAX && (
        <li className="muted">{gateways.data.length - SHOWN_MAX} more are not shown.</li>
      )}
    </ul>
  );
}

function GatewayCard({
  gateway,
  health,
  error,
}: {
  gateway: Gateway;
  health: Health | null;
  error: unknown;
}) {
  return (
    <article className="card gateway" aria-label={`Gateway ${gateway.id}`}>
      <div className="bar">
        <h2>{visible(gateway.id)}</h2>
        {health ? (
          <Badge status={health.health} />
        ) : (
          <Badge status={error ? "unknown" : "checking"} />
        )}
        {gateway.paused && <Badge status="paused" />}
        {gateway.default && <span className="muted small">default</span>}
        <span className="grow" />
        <GatewayActions gateway={gateway} />
      </div>
      <dl className="facts">
        <dt>Provider</dt>
        <dd>
          {visible(gateway.provider || "set by the agent")} in{" "}
          {visible(gateway.environment || "no environment")}
        </dd>
        <dt>URL</dt>
        <dd>{gateway.url ? visible(gateway.url) : "in the server process"}</dd>
        <dt>Capabilities</dt>
        <dd>{visible((gateway.capabilities ?? []).join(", ")) || "none"}</dd>
        <dt>Accepts</dt>
        <dd>
          {visible((gateway.agents ?? []).join(", ")) || "any agent"} with trust level{" "}
          {gateway.min_trust_level} or higher
        </dd>
      </dl>
      <History health={health} />
    </article>
  );
}

interface Stretch {
  health: string;
  fromMs: number;
  toMs: number;
}

/** Splits the time since `fromMs` into stretches of the same health. */
export function stretches(
  health: Pick<Health, "health" | "history">,
  fromMs: number,
  nowMs: number,
): Stretch[] {
  const changes = health.history.map((one) => ({ atMs: Date.parse(one.at), health: one.health }));
  // Without a recorded change the current health covers the whole time.
  if (changes.length === 0) return [{ health: health.health, fromMs, toMs: nowMs }];
  const all: Stretch[] = [];
  for (const [at, one] of changes.entries()) {
    const toMs = changes[at + 1]?.atMs ?? nowMs;
    if (toMs > fromMs) all.push({ health: one.health, fromMs: Math.max(fromMs, one.atMs), toMs });
  }
  return all;
}

function History({ health }: { health: Health | null }) {
  const now = useNow(REFRESH_INTERVAL_MS);
  const all = health ? stretches(health, now - DAY_MS, now) : [];
  const at = (ms: number) => (100 * (ms - (now - DAY_MS))) / DAY_MS;
  const label =
    all.length === 0
      ? "Health is not known yet"
      : `Health over the last day: ${all.map((one) => `${one.health} from ${clock(new Date(one.fromMs).toISOString())}`).join(", ")}`;
  return (
    <div className="history">
      <div className="strip" role="img" aria-label={label}>
        {all.map((one) => (
          <i
            key={one.fromMs}
            className={`ink-${tone(one.health)}`}
            title={`${one.health} from ${clock(new Date(one.fromMs).toISOString())}`}
            style={{ left: `${at(one.fromMs)}%`, width: `${at(one.toMs) - at(one.fromMs)}%` }}
          />
        ))}
      </div>
      {health && health.history.length > 0 ? (
        <details>
          <summary>
            {health.history.length} {health.history.length === 1 ? "change" : "changes"} of health{" "}
            <span className="muted small">the last 24 hours above</span>
          </summary>
          <ol className="changes">
            {health.history.toReversed().map((one) => (
              <li key={one.at}>
                <Badge status={one.health} /> <Moment at={one.at} />
              </li>
            ))}
          </ol>
        </details>
      ) : (
        <p className="muted small">
          {health ? "Last 24 hours: no change since the server started." : "\u00a0"}
        </p>
      )}
    </div>
  );
}

function GatewayActions({ gateway }: { gateway: Gateway }) {
  const may = usePermission("gateway:write");
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  if (!may) return null;
  const toggle = async () => {
    setBusy(true);
    setRefused(null);
    try {
      await request("patch", "/api/v1/gateways/{name}", {
        path: { name: gateway.id },
        body: { paused: !gateway.paused },
      });
      await queries.invalidateQueries({ queryKey: ["gateways"] });
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      {refused !== null && <ErrorMessage error={refused} />}
      <button
        type="button"
        disabled={busy}
        onClick={toggle}
        aria-label={`${gateway.paused ? "Resume" : "Pause"} ${gateway.id}`}
      >
        {gateway.paused ? "Resume" : "Pause"}
      </button>
    </>
  );
}

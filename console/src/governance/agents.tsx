// Agents: their status, trust level, gateways and limits.
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { request } from "../api/client";
import { Empty, ErrorMessage, Loading } from "../parts/feedback";
import { money, useNow } from "../parts/format";
import { Badge, words } from "../parts/status";
import { visible } from "../parts/value";
import { usePermission } from "../session";
import { periodSpan } from "./burn-down";
import { type Agent, type Gateway, useAgents, useGateways } from "./registry";

export function Agents() {
  const agents = useAgents();
  const gateways = useGateways();
  const monthMs = periodSpan("monthly", useNow(600_000)).fromMs;
  const month = useQuery({
    queryKey: ["month", monthMs],
    queryFn: async ({ signal }) =>
      (
        await request("get", "/api/v1/cost", {
          query: { bucket: "month", by: "agent", since_ms: monthMs },
          signal,
        })
      ).data,
  });
  if (agents.error && !agents.data) return <ErrorMessage error={agents.error} />;
  if (!agents.data) return <Loading what="agents" />;
  if (agents.data.length === 0) {
    return (
      <div className="card">
        <Empty title="No agents yet">
          <code>sluice apply -f FILE</code>
        </Empty>
      </div>
    );
  }
  return (
    <div className="card table stacks">
      <table>
        <thead>
          <tr>
            <th>Agent</th>
            <th>Status</th>
            <th>Trust</th>
            <th>Gateways</th>
            <th>Limits</th>
            <th className="right">This month</th>
            <th>
              <span className="sr">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {agents.data.map((one) => (
            <AgentRow
              key={one.id}
              agent={one}
              gateways={gateways.data ?? []}
              spent={
                month.data ? (month.data.find((row) => row.agent === one.id)?.cost ?? 0) : null
              }
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Gateways that accept this agent's work. */
export function reachable(agent: Agent, gateways: readonly Gateway[]): string[] {
  if (agent.gateway !== undefined) return [agent.gateway];
  const offers = (one: Gateway) =>
    (agent.capabilities ?? []).every((wanted) => (one.capabilities ?? []).includes(wanted));
  const takes = (one: Gateway) =>
    (one.agents ?? []).length === 0 || (one.agents ?? []).includes(agent.id);
  return gateways
    .filter((one) => takes(one) && offers(one) && agent.trust_level >= one.min_trust_level)
    .map((one) => one.id);
}

function limits(agent: Agent): string[] {
  const all: string[] = [];
  if (agent.max_concurrent_steps !== undefined)
    all.push(`${agent.max_concurrent_steps} concurrent steps`);
  if (agent.rate) all.push(`${agent.rate.limit} per ${agent.rate.window_s} s`);
  if (agent.budget_monthly_cents !== undefined)
    all.push(`${money(agent.budget_monthly_cents / 100)} per month`);
  if (agent.tools?.allow) all.push(`tools: ${agent.tools.allow.join(", ") || "none"}`);
  if (agent.tools?.deny && agent.tools.deny.length > 0)
    all.push(`denied tools: ${agent.tools.deny.join(", ")}`);
  return all;
}

function AgentRow({
  agent,
  gateways,
  spent,
}: {
  agent: Agent;
  gateways: readonly Gateway[];
  spent: number | null;
}) {
  const through = reachable(agent, gateways);
  const trust = `trust ${agent.trust_level} of 10`;
  return (
    <tr>
      <td>
        <strong>{visible(agent.id)}</strong>
        <span className="about">
          {visible([agent.name, agent.model].filter(Boolean).join(" · "))}
        </span>
      </td>
      <td>
        <Badge
          status={agent.status}
          as={agent.status === "idle" ? "good" : agent.status === "paused" ? "wait" : undefined}
        />
        <span className="about">
          {words(agent.phase)}
          {agent.phase === "poc" && ", budgets and trust are observed, not enforced"}
        </span>
      </td>
      <td data-label="Trust">
        <span className="trust" role="img" aria-label={trust} title={trust}>
          <i style={{ width: `${agent.trust_level * 10}%` }} />
        </span>{" "}
        <span className="small">{agent.trust_level}</span>
      </td>
      <td className="wraps" data-label="Gateways">
        {visible(through.join(", ")) || <span className="ink-bad">no gateway</span>}
      </td>
      <td className="wraps" data-label="Limits">
        {visible(limits(agent).join(" · ")) || <span className="muted">none</span>}
      </td>
      <td className="right" data-label="This month">
        {spent === null ? "–" : money(spent)}
      </td>
      <td className="right">
        <AgentActions agent={agent} />
      </td>
    </tr>
  );
}

function AgentActions({ agent }: { agent: Agent }) {
  const may = usePermission("agent:write");
  const queries = useQueryClient();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const paused = agent.status === "paused";
  if (!may || !["idle", "running", "paused"].includes(agent.status)) return null;
  const toggle = async () => {
    setBusy(true);
    setRefused(null);
    try {
      await request("patch", "/api/v1/agents/{name}", {
        path: { name: agent.id },
        body: { status: paused ? "idle" : "paused" },
      });
      await queries.invalidateQueries({ queryKey: ["agents"] });
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <button
        type="button"
        disabled={busy}
        onClick={toggle}
        aria-label={`${paused ? "Resume" : "Pause"} ${agent.id}`}
      >
        {paused ? "Resume" : "Pause"}
      </button>
      {refused !== null && <ErrorMessage error={refused} />}
    </>
  );
}

// Registry rows, as far as the console reads them.
import { useQuery } from "@tanstack/react-query";
import { request } from "../api/client";

export interface Agent {
  id: string;
  name?: string;
  status: string;
  phase: string;
  trust_level: number;
  max_concurrent_steps?: number;
  rate?: { limit: number; window_s: number };
  budget_monthly_cents?: number;
  capabilities?: string[];
  gateway?: string;
  model?: string;
  tools?: { allow?: string[]; deny?: string[] };
}

export interface Gateway {
  id: string;
  name?: string;
  provider: string;
  environment: string;
  url?: string;
  capabilities?: string[];
  min_trust_level: number;
  cost_rank: number;
  default: boolean;
  paused: boolean;
  agents?: string[];
}

export interface Budget {
  id: string;
  scope: "global" | "gateway" | "agent" | "workflow" | "run";
  of?: string;
  period: "daily" | "weekly" | "monthly" | "total";
  amount_cents: number;
  enabled?: boolean;
  spent: string;
  reserved: string;
  left: string;
  overrun: string;
  closed: boolean;
}

export const useAgents = () =>
  useQuery({
    queryKey: ["agents"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/agents", { signal })).data as unknown as Agent[],
  });

export const useGateways = () =>
  useQuery({
    queryKey: ["gateways"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/gateways", { signal })).data as unknown as Gateway[],
  });

/** Budgets with their current figures. */
export const useBudgets = () =>
  useQuery({
    queryKey: ["budgets"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/budgets", { signal })).data as unknown as Budget[],
  });

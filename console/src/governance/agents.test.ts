import { expect, test } from "vitest";
import { reachable } from "./agents";
import type { Agent, Gateway } from "./registry";

const agent = (more: Partial<Agent> = {}): Agent => ({
  id: "ada",
  status: "idle",
  phase: "production",
  trust_level: 5,
  ...more,
});
const gateway = (id: string, more: Partial<Gateway> = {}): Gateway => ({
  id,
  provider: "mock",
  environment: "dev",
  min_trust_level: 1,
  cost_rank: 0,
  default: false,
  paused: false,
  ...more,
});

test("a gateway accepts an agent by capabilities, agent list and trust level", () => {
  const all = [
    gateway("plain"),
    gateway("text", { capabilities: ["text"] }),
    gateway("high", { capabilities: ["text"], min_trust_level: 6 }),
    gateway("bobs", { capabilities: ["text"], agents: ["bob"] }),
  ];
  expect(reachable(agent({ capabilities: ["text"] }), all)).toEqual(["text"]);
  expect(reachable(agent(), all)).toEqual(["plain", "text"]);
  expect(reachable(agent({ gateway: "elsewhere" }), all)).toEqual(["elsewhere"]);
});

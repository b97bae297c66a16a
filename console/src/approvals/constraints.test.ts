import { expect, test } from "vitest";
import { constraintsOf, costCeilingOf, tightened, toolsOf, UNCHANGED } from "./constraints";

const bounds = { max_cost: 310_000, max_output_tokens: 500, environments: ["dev", "staging"] };

test("unchanged constraints are not sent", () => {
  expect(tightened(bounds, ["mail"], UNCHANGED)).toEqual({ constraints: {}, wrong: {} });
});

test("tightened constraints are sent in the server's units", () => {
  const by = {
    cost: "0.001",
    tokens: "100",
    without: ["mail", "staging"],
    deny: " web , ",
    readOnly: true,
  };
  expect(tightened(bounds, ["mail", "read"], by).constraints).toEqual({
    max_cost: 100_000,
    max_output_tokens: 100,
    tools_allow: ["read"],
    environments: ["dev"],
    tools_deny: ["web"],
    data_access: "read_only",
  });
});

test("a wider constraint is rejected in the form", () => {
  for (const by of [
    { cost: "1" },
    { cost: "-1" },
    { cost: "much" },
    { tokens: "501" },
    { tokens: "1.5" },
    { without: ["dev", "staging"] },
  ]) {
    const { constraints, wrong } = tightened(bounds, [], { ...UNCHANGED, ...by });
    expect(Object.keys(wrong)).toHaveLength(1);
    expect(constraints).toEqual({});
  }
});

test("tool calls and escalations have no constraints", () => {
  expect(constraintsOf({ source: "policy", action: { constraints: bounds } })).toEqual(bounds);
  expect(constraintsOf({ source: "tool", action: { constraints: bounds } })).toBeNull();
  expect(constraintsOf({ source: "step", action: { question: "?" } })).toBeNull();
  expect(constraintsOf({ source: "step", action: null })).toBeNull();
  expect(costCeilingOf({ action: { cost_ceiling: 5 } })).toBe(5);
  expect(costCeilingOf({ action: { question: "?" } })).toBeNull();
  expect(toolsOf({ action: { tools: ["mail", 3] } })).toEqual(["mail"]);
  expect(
    toolsOf({ action: { tools: ["mail", "web"], constraints: { tools_allow: ["mail"] } } }),
  ).toEqual(["mail"]);
});

import { expect, test } from "vitest";
import { AS_ASKED, boundsOf, ceilingOf, tighten, toolsOf } from "./constraints";

const bounds = { max_cost: 310_000, max_output_tokens: 500, environments: ["dev", "staging"] };

test("nothing is sent where nothing was tightened", () => {
  expect(tighten(bounds, ["mail"], AS_ASKED)).toEqual({ constraints: {}, wrong: {} });
});

test("what is tightened is sent, in what the server counts in", () => {
  const by = {
    cost: "0.001",
    tokens: "100",
    without: ["mail", "staging"],
    deny: " web , ",
    readOnly: true,
  };
  expect(tighten(bounds, ["mail", "read"], by).constraints).toEqual({
    max_cost: 100_000,
    max_output_tokens: 100,
    tools_allow: ["read"],
    environments: ["dev"],
    tools_deny: ["web"],
    data_access: "read_only",
  });
});

test("what would widen is refused before it is sent", () => {
  for (const by of [
    { cost: "1" },
    { cost: "-1" },
    { cost: "much" },
    { tokens: "501" },
    { tokens: "1.5" },
    { without: ["dev", "staging"] },
  ]) {
    const { constraints, wrong } = tighten(bounds, [], { ...AS_ASKED, ...by });
    expect(Object.keys(wrong)).toHaveLength(1);
    expect(constraints).toEqual({});
  }
});

test("only work has bounds", () => {
  expect(boundsOf({ source: "policy", action: { constraints: bounds } })).toEqual(bounds);
  expect(boundsOf({ source: "tool", action: { constraints: bounds } })).toBeNull();
  expect(boundsOf({ source: "step", action: { question: "?" } })).toBeNull();
  expect(boundsOf({ source: "step", action: null })).toBeNull();
  expect(ceilingOf({ action: { cost_ceiling: 5 } })).toBe(5);
  expect(ceilingOf({ action: { question: "?" } })).toBeNull();
  expect(toolsOf({ action: { tools: ["mail", 3] } })).toEqual(["mail"]);
  expect(
    toolsOf({ action: { tools: ["mail", "web"], constraints: { tools_allow: ["mail"] } } }),
  ).toEqual(["mail"]);
});

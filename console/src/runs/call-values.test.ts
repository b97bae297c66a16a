import { expect, test } from "vitest";
import { resourceName, valueRows } from "./call-values";

test("arguments have their value, where it was seen, and their labels", () => {
  const rows = valueRows({
    input: { amount: 700, files: [{ id: "f-1" }] },
    call: {
      arguments: {
        amount: { role: "amount", seen: ["stranger"], origins: ["web"] },
        "files.id": { seen: ["prompt"] },
      },
      exposed: true,
    },
    flow: { origins: ["web"], secrecy: ["customer"], control: true },
    history: { "agent: count": 3 },
  });
  expect(rows).toEqual([
    ["amount", "700; role amount; seen in stranger; from web"],
    ["files", '[{"id":"f-1"}]'],
    ["files.id", "seen in prompt"],
    ["origins", "web"],
    ["secrecy", "customer"],
    ["control", "a condition about an untrusted value led here"],
    ["exposed", "the run has read a stranger's text"],
    ["agent: count", "3"],
  ]);
});

test("facts without values have no rows, and any resource has a name", () => {
  expect(valueRows({})).toEqual([]);
  expect(resourceName({ what: { tool: "shop.refund" } })).toBe("shop.refund");
  expect(resourceName({ what: { gateway: { name: "house" } } })).toBe("house");
  expect(resourceName({})).toBe("");
});

import { expect, test } from "vitest";
import { type FlowPicture, labelledEdges, labelText } from "./plan";

test("labels are shown in a few words", () => {
  expect(labelText({ origins: ["caller", "web"], secrecy: ["customer"] })).toBe(
    "caller, web + customer",
  );
  expect(labelText({ secrecy: ["payroll"], control: true })).toBe("payroll (control)");
  expect(labelText({ control: true })).toBe("(control)");
  expect(labelText({})).toBe("");
});

test("only links with labels are drawn", () => {
  const flow: FlowPicture = {
    arguments: [],
    steps: [],
    links: [
      { from: "a", to: "b", labels: { origins: ["web"] } },
      { from: "a", to: "c", labels: {} },
    ],
  };
  expect(labelledEdges(flow)).toEqual([{ from: "a", to: "b", label: "web" }]);
  expect(labelledEdges(null)).toEqual([]);
});

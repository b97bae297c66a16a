import { expect, test } from "vitest";
import { type FieldSpec, initialDrafts, parseDrafts } from "./form-values";

const value = (field: FieldSpec, draft: string) => {
  const { values, wrong } = parseDrafts({ it: field }, { it: draft });
  return wrong.it === undefined ? values.it : `wrong: ${wrong.it}`;
};

test("text is parsed as its declared type", () => {
  expect(value({ type: "string" }, "12")).toBe("12");
  expect(value({ type: "number" }, "1.5")).toBe(1.5);
  expect(value({ type: "integer" }, "12")).toBe(12);
  expect(value({ type: "boolean" }, "false")).toBe(false);
  expect(value({ type: "array" }, "[1]")).toEqual([1]);
  expect(value({ type: "object" }, '{"a": 1}')).toEqual({ a: 1 });
  expect(value({}, "[1]")).toEqual([1]);
  expect(value({}, "plain [")).toBe("plain [");
  expect(value({ type: "integer", enum: [1, 2] }, "2")).toBe(2);
});

test("text of another type is an error", () => {
  const bad: [FieldSpec, string][] = [
    [{ type: "number" }, "twelve"],
    [{ type: "number" }, "1e999"],
    [{ type: "integer" }, "1.5"],
    [{ type: "integer" }, "9007199254740993"],
    [{ type: "boolean" }, "1"],
    [{ type: "array" }, "{}"],
    [{ type: "object" }, "[]"],
    [{ type: "object" }, "null"],
    [{ enum: ["a"] }, "b"],
    [{ required: true }, "  "],
  ];
  for (const [field, draft] of bad) expect(value(field, draft)).toMatch(/^wrong/);
});

test("empty fields are not sent", () => {
  const fields = {
    a: { type: "number" },
    b: { type: "string", default: "eu" },
    c: { type: "integer", default: 3 },
  };
  expect(initialDrafts(fields)).toEqual({ a: "", b: "eu", c: "3" });
  expect(parseDrafts(fields, { a: "", b: "eu", c: "3" })).toEqual({
    values: { b: "eu", c: 3 },
    wrong: {},
  });
  expect(parseDrafts(fields, { a: "", b: "", c: "" })).toEqual({ values: { b: "" }, wrong: {} });
});

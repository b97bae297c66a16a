import { expect, test } from "vitest";
import { type Frame, Frames } from "./sse";

const TEXT =
  'id: 7\nevent: node.log\ndata: {"a":1}\n\n: heartbeat\n\nid: 8\nevent: x\ndata: one\ndata: two\n\n';

test("frames do not depend on how the stream is split", () => {
  const whole = new Frames().push(TEXT);
  expect(whole).toEqual([
    { id: "7", event: "node.log", data: '{"a":1}' },
    { id: "8", event: "x", data: "one\ntwo" },
  ]);
  for (let size = 1; size < TEXT.length; size += 1) {
    const frames = new Frames();
    const seen: Frame[] = [];
    for (let at = 0; at < TEXT.length; at += size)
      seen.push(...frames.push(TEXT.slice(at, at + size)));
    expect(seen).toEqual(whole);
  }
});

test("a frame needs data, and an incomplete one is not returned", () => {
  const frames = new Frames();
  expect(frames.push(": dropped\n\nid: 3\n\ndata: un")).toEqual([]);
  expect(frames.push("done\r\n\r\n")).toEqual([{ id: null, event: "message", data: "undone" }]);
});

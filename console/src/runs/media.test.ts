import { expect, test } from "vitest";
import { itemsOf } from "./media";

const PNG = "data:image/png;base64,iVBORw0KGgo=";
const kinds = (media: unknown) => itemsOf(media).map((one) => one.kind);

test("data URLs of safe types are rendered, single or in a list", () => {
  expect(kinds({ url: PNG, mime: "image/png" })).toEqual(["image"]);
  expect(kinds([{ url: PNG }, { url: "data:audio/mpeg;base64,AAAA", mime: "audio/mpeg" }])).toEqual(
    ["image", "audio"],
  );
  expect(kinds({ url: "data:video/mp4;base64,AAAA" })).toEqual(["video"]);
  expect(itemsOf(null)).toEqual([]);
});

test("anything that could run or load something stays text", () => {
  const odd = [
    { url: "https://example.com/c.png", mime: "image/png" },
    { url: "javascript:alert(1)", mime: "image/png" },
    { url: "data:text/html;base64,PHNjcmlwdD4=", mime: "image/png" },
    { url: "data:image/svg+xml;base64,PHN2Zz4=", mime: "image/svg+xml" },
    { url: "data:image/png,<script>", mime: "image/png" },
    { url: 'data:image/png;base64,AAAA"><script>', mime: "image/png" },
    { url: " data:image/png;base64,AAAA" },
    { url: PNG, mime: "text/html" },
    { url: 7, mime: "image/png" },
    "data:image/png;base64,AAAA",
    7,
  ];
  expect(kinds(odd)).toEqual(odd.map(() => "text"));
  expect(itemsOf(odd).every((one) => one.url === "")).toBe(true);
});

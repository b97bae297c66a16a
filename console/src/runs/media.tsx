// Images, audio and video that a step returned.
//
// INVARIANT: media cannot run scripts or load anything. Only data URLs of types without scripts are
// rendered; everything else is shown as text.
import { Value, visible } from "../parts/value";

/** Rendered types. SVG is not among them: it can contain scripts. */
const SHOWN: Readonly<Record<string, "image" | "audio" | "video">> = {
  "image/png": "image",
  "image/jpeg": "image",
  "image/gif": "image",
  "image/webp": "image",
  "image/avif": "image",
  "audio/mpeg": "audio",
  "audio/mp4": "audio",
  "audio/ogg": "audio",
  "audio/wav": "audio",
  "audio/webm": "audio",
  "video/mp4": "video",
  "video/ogg": "video",
  "video/webm": "video",
};

/** Longest data URL that is rendered, in characters. */
const URL_MAX = 32 * 1024 * 1024;
/** Most items rendered per step. */
const ITEMS_MAX = 24;

export interface Item {
  kind: "image" | "audio" | "video" | "text";
  /** The data URL; empty for text. */
  url: string;
  mime: string;
  of: unknown;
}

/** The media type of a base64 data URL; null for any other URL. */
function typeOf(url: string): string | null {
  return (
    /^data:([a-z]+\/[a-z0-9.+-]+)(?:;[a-z0-9=-]+)*;base64,[A-Za-z0-9+/]*={0,2}$/.exec(url)?.[1] ??
    null
  );
}

function item(of: unknown): Item {
  const { url, mime } = (typeof of === "object" && of !== null ? of : {}) as {
    url?: unknown;
    mime?: unknown;
  };
  const text: Item = { kind: "text", url: "", mime: typeof mime === "string" ? mime : "", of };
  if (typeof url !== "string" || url.length > URL_MAX) return text;
  const type = typeOf(url);
  const kind = type === null ? undefined : SHOWN[type];
  // Trust the type in the data URL; reject an item whose `mime` contradicts it.
  if (type === null || kind === undefined || (typeof mime === "string" && mime !== type))
    return text;
  return { kind, url, mime: type, of };
}

/** The items of a step's media: a single one or a list. */
export function itemsOf(media: unknown): Item[] {
  if (media === null || media === undefined) return [];
  return (Array.isArray(media) ? media : [media]).map(item);
}

export function Media({ of }: { of: unknown }) {
  const items = itemsOf(of);
  return (
    <div className="media">
      {items.slice(0, ITEMS_MAX).map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: outputs never change
        <MediaItem key={at} item={one} label={`Media ${at + 1}`} />
      ))}
      {items.length > ITEMS_MAX && (
        <p className="muted small">{items.length - ITEMS_MAX} more are not shown.</p>
      )}
    </div>
  );
}

function MediaItem({ item, label }: { item: Item; label: string }) {
  const what = `${label}, ${visible(item.mime)}`;
  if (item.kind === "image") return <img src={item.url} alt={what} />;
  if (item.kind === "audio") {
    // biome-ignore lint/a11y/useMediaCaption: a step returns no captions
    return <audio controls preload="metadata" src={item.url} aria-label={what} />;
  }
  if (item.kind === "video") {
    // biome-ignore lint/a11y/useMediaCaption: a step returns no captions
    return <video controls preload="metadata" src={item.url} aria-label={what} />;
  }
  return <Value of={item.of} label={label} />;
}

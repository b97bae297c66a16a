// Pictures, sound and films that a step made.
//
// What must hold: nothing that a step made can run here or fetch anything. Only data that is in the value
// itself is shown, and only of types that hold no script; everything else is shown as text.
import { Value, visible } from "../parts/value";

/** What is shown as what it is. Pictures with scripts in them (SVG) are not among these. */
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

/** Longest address that is put on a page. */
const URL_MAX = 32 * 1024 * 1024;
/** Most of them that are shown of one step. */
const ITEMS_MAX = 24;

/** One thing that was made. */
export interface Item {
  kind: "image" | "audio" | "video" | "text";
  /** The address of what is shown; empty for what is told as text. */
  url: string;
  mime: string;
  of: unknown;
}

/** The type that an address of data says of itself; null for any other address. */
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
  // What the address says counts; a step that says otherwise beside it is not believed.
  if (type === null || kind === undefined || (typeof mime === "string" && mime !== type))
    return text;
  return { kind, url, mime: type, of };
}

/** The things in a step's media: one, or a list of them. */
export function itemsOf(media: unknown): Item[] {
  if (media === null || media === undefined) return [];
  return (Array.isArray(media) ? media : [media]).map(item);
}

export function Media({ of }: { of: unknown }) {
  const items = itemsOf(of);
  return (
    <div className="media">
      {items.slice(0, ITEMS_MAX).map((one, at) => (
        // What a step made does not change, so that a place in it is as good as a name.
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
  if (item.kind === "audio")
    return <audio controls preload="metadata" src={item.url} aria-label={what} />;
  if (item.kind === "video")
    return <video controls preload="metadata" src={item.url} aria-label={what} />;
  return <Value of={item.of} label={label} />;
}

// The journal of a run, live.
import { useState } from "react";
import { request } from "../api/client";
import type { Event } from "../api/follow";
import { Empty, ErrorMessage } from "../parts/feedback";
import { clock } from "../parts/format";
import { visible } from "../parts/value";
import { VirtualList } from "../parts/virtual-list";
import { type Feed, textField } from "./feed";

const PAGE = 500;
const SHORT = 160;

/** A one-line summary of an event. */
function gist(event: Event): string {
  const found = [
    "errorMessage",
    "text",
    "summary",
    "status",
    "disposition",
    "waitingReason",
    "reason",
    "message",
    "hint",
  ]
    .map((name) => textField(event, name))
    .find((text) => text !== null && text !== "");
  return visible((found ?? "").slice(0, SHORT)).replaceAll("\n", " ");
}

interface Props {
  run: string;
  feed: Feed;
  chosen: string | null;
  onChoose: (step: string) => void;
}

export function Events({ run, feed, chosen, onChoose }: Props) {
  const [refused, setRefused] = useState<unknown>(null);
  const events = feed.events;
  const first = events[0]?.eventId ?? 1;
  const earlier = async () => {
    setRefused(null);
    const after = Math.max(0, first - 1 - PAGE);
    try {
      const query = { cursor: after, limit: Math.min(PAGE, first - 1) };
      const { data } = await request("get", "/api/v1/runs/{run}/journal", { path: { run }, query });
      feed.prepend(data as Event[]);
    } catch (error) {
      setRefused(error);
    }
  };
  if (events.length === 0) return <Empty title="No events yet" />;
  const row = (at: number) => {
    const event = events[at];
    if (!event) return null;
    const node = textField(event, "nodeId");
    return (
      <button
        type="button"
        className={node !== null && node === chosen ? "event chosen" : "event"}
        disabled={node === null}
        onClick={() => node !== null && onChoose(node)}
      >
        <span className="muted right">{event.eventId}</span>
        <span className="muted">{clock(event.timestamp)}</span>
        <span className="cut mono">{event.type}</span>
        <span className="cut">{node ?? ""}</span>
        <span className="cut muted">{gist(event)}</span>
      </button>
    );
  };
  return (
    <div className="journal">
      {first > 1 && (
        <p className="bar small">
          <button type="button" className="link" onClick={earlier}>
            Show earlier events
          </button>
          <span className="muted">{first - 1} earlier events</span>
        </p>
      )}
      {refused !== null && <ErrorMessage error={refused} />}
      <VirtualList
        count={events.length}
        row={row}
        id={(at) => events[at]?.eventId ?? at}
        label="Events"
        follow
      />
    </div>
  );
}

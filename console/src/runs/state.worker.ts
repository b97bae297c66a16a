// Asks for the state of a run and reads it beside the page: of a large run it is megabytes.
import { Changes } from "./state-diff";

const changes = new Changes();

export type Told =
  | { kind: "part"; nodes: ReturnType<Changes["take"]>["parts"][number]["nodes"] }
  | { kind: "rest"; rest: ReturnType<Changes["take"]>["rest"] }
  | { kind: "refused"; status: number; told: object };

const tell = (told: Told) => self.postMessage(told);

self.onmessage = async (event: MessageEvent<{ run: string }>) => {
  const url = `/api/v1/runs/${encodeURIComponent(event.data.run)}/state`;
  try {
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
    });
    if (!answer.ok)
      return tell({
        kind: "refused",
        status: answer.status,
        told: await answer.json().catch(() => ({})),
      });
    const { parts, rest } = changes.take((await answer.json()).data);
    for (const part of parts) tell({ kind: "part", nodes: part.nodes });
    tell({ kind: "rest", rest });
  } catch {
    tell({ kind: "refused", status: 0, told: {} });
  }
};

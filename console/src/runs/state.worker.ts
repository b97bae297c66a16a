// Loads and parses the state of a run off the main thread: a large run has megabytes of it.
import { StateDiff } from "./state-diff";

const changes = new StateDiff();

export type WorkerMessage =
  | { kind: "part"; nodes: ReturnType<StateDiff["diff"]>["parts"][number]["nodes"] }
  | { kind: "rest"; rest: ReturnType<StateDiff["diff"]>["rest"] }
  | { kind: "refused"; status: number; problem: object };

const send = (message: WorkerMessage) => self.postMessage(message);

self.onmessage = async (event: MessageEvent<{ run: string }>) => {
  const url = `/api/v1/runs/${encodeURIComponent(event.data.run)}/state`;
  try {
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      credentials: "same-origin",
    });
    if (!answer.ok)
      return send({
        kind: "refused",
        status: answer.status,
        problem: await answer.json().catch(() => ({})),
      });
    const { parts, rest } = changes.diff((await answer.json()).data);
    for (const part of parts) send({ kind: "part", nodes: part.nodes });
    send({ kind: "rest", rest });
  } catch {
    send({ kind: "refused", status: 0, problem: {} });
  }
};

// Doing steps again: in a new run from some of them, or back at an earlier place. First it is shown what would be
// done a second time.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ask } from "../api/client";
import { clock } from "../parts/figures";
import { Dialog } from "../parts/dialog";
import { Loading, Refusal } from "../parts/states";
import { words } from "../parts/status";
import { go, runPath } from "../route";
import type { RunState } from "./live";

interface Wish {
  way: "restart" | "rewind";
  state: RunState;
  onClose: () => void;
  onChanged: () => void;
}

/** Most steps that a preview names. */
const NAMED_MAX = 30;
/** Most lines of a list at once; the rest is found by typing. */
const LISTED_MAX = 100;

const FAILED = new Set(["failed", "timed_out", "blocked", "cancelled"]);

export function Again({ way, state, onClose, onChanged }: Wish) {
  return way === "restart" ? (
    <Restart state={state} onClose={onClose} />
  ) : (
    <Rewind state={state} onClose={onClose} onChanged={onChanged} />
  );
}

/** What would be done a second time. */
function Preview({ repeats, error, asking }: { repeats: readonly string[] | undefined; error: unknown; asking: boolean }) {
  if (error) return <Refusal error={error} />;
  if (asking || !repeats) return <Loading what="the preview" />;
  return (
    <div className="note" role="status">
      {repeats.length === 0 ? (
        "No step is done a second time."
      ) : (
        <>
          <strong>Done a second time:</strong> {repeats.slice(0, NAMED_MAX).join(", ")}
          {repeats.length > NAMED_MAX && ` and ${repeats.length - NAMED_MAX} more`}
        </>
      )}
    </div>
  );
}

function Restart({ state, onClose }: { state: RunState; onClose: () => void }) {
  const run = state.run_id;
  const failed = state.node_results.filter((node) => FAILED.has(node.status)).map((node) => node.node_id);
  const [from, setFrom] = useState<readonly string[]>(failed);
  const [refused, setRefused] = useState<unknown>(null);
  const preview = useQuery({
    queryKey: ["run", run, "restart", from],
    queryFn: async () =>
      (await ask("post", "/api/v1/runs/{run}/restart", { path: { run }, body: { from, preview: true } })).data,
    enabled: from.length > 0,
  });
  const restart = async () => {
    try {
      const { data } = await ask("post", "/api/v1/runs/{run}/restart", { path: { run }, body: { from } });
      if (data.run_id) go(runPath(data.run_id));
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  const turn = (id: string) => setFrom(from.includes(id) ? from.filter((one) => one !== id) : [...from, id]);
  return (
    <Dialog title="Restart in a new run" onClose={onClose}>
      <p>The steps that are chosen are done again, with all that depend on them. The others keep what they made.</p>
      <div className="choices" role="group" aria-label="Steps that are done again">
        {state.node_results.map((node) => (
          <label key={node.node_id}>
            <input type="checkbox" checked={from.includes(node.node_id)} onChange={() => turn(node.node_id)} />
            <span className="grow cut">{node.node_id}</span>
            <span className="muted small">{words(node.status)}</span>
          </label>
        ))}
      </div>
      {from.length === 0 ? (
        <p className="muted">Choose where it begins.</p>
      ) : (
        <Preview repeats={preview.data?.repeats} error={preview.error} asking={preview.isPending} />
      )}
      {refused !== null && <Refusal error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Leave it
        </button>
        <button type="button" className="primary" disabled={from.length === 0 || !preview.data} onClick={restart}>
          Start the new run
        </button>
      </div>
    </Dialog>
  );
}

interface RewindWish {
  state: RunState;
  onClose: () => void;
  onChanged: () => void;
}

function Rewind({ state, onClose, onChanged }: RewindWish) {
  const run = state.run_id;
  const [at, setAt] = useState<number | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const places = useQuery({
    queryKey: ["run", run, "checkpoints"],
    queryFn: async ({ signal }) =>
      (await ask("get", "/api/v1/runs/{run}/checkpoints", { path: { run }, signal })).data,
    staleTime: 0,
  });
  const preview = useQuery({
    queryKey: ["run", run, "rewind", at],
    queryFn: async () =>
      (await ask("post", "/api/v1/runs/{run}/rewind", { path: { run }, body: { to: at, preview: true } })).data,
    enabled: at !== null,
    staleTime: 0,
  });
  const act = async (way: "rewind" | "branch") => {
    try {
      if (way === "rewind") {
        await ask("post", "/api/v1/runs/{run}/rewind", { path: { run }, body: { to: at } });
        onChanged();
      } else {
        const { data } = await ask("post", "/api/v1/runs/{run}/branch", { path: { run }, body: { at } });
        if (data.run_id) go(runPath(data.run_id));
      }
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  const usable = places.data?.filter((one) => !one.undone) ?? [];
  return (
    <Dialog title="Go back to a checkpoint" onClose={onClose}>
      <p>In this run, or in a new one that leaves this as it is.</p>
      {places.error && <Refusal error={places.error} />}
      {places.isPending && !places.error && <Loading what="checkpoints" />}
      {places.data && (
        <div className="choices" role="radiogroup" aria-label="Checkpoint">
          <label>
            <input type="radio" name="at" checked={at === 0} onChange={() => setAt(0)} />
            The beginning
          </label>
          {usable.map((one) => (
            <label key={one.number}>
              <input type="radio" name="at" checked={at === one.number} onChange={() => setAt(one.number)} />
              <span className="grow cut">
                after {one.node_id} ({words(one.what)})
              </span>
              <span className="muted small">{clock(one.at)}</span>
            </label>
          ))}
        </div>
      )}
      {at !== null && <Preview repeats={preview.data?.repeats} error={preview.error} asking={preview.isPending} />}
      {refused !== null && <Refusal error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Leave it
        </button>
        <button type="button" disabled={at === null || !preview.data} onClick={() => act("branch")}>
          In a new run
        </button>
        <button type="button" className="primary" disabled={at === null || !preview.data} onClick={() => act("rewind")}>
          In this run
        </button>
      </div>
    </Dialog>
  );
}

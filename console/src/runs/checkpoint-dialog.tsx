// Back to a checkpoint: in the same run, or in a new one in which some values are others.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Schemas } from "../api/client";
import { Dialog } from "../parts/dialog";
import { Loading, Refusal } from "../parts/feedback";
import { clock } from "../parts/format";
import { words } from "../parts/status";
import { go, runPath } from "../route";
import type { RunState } from "./live";
import { Changed, type Edits, NO_EDITS, readEdits } from "./overrides";
import { Choices, Preview } from "./step-picker";

type Way = "rewind" | "branch";
type Checkpoint = Schemas["CheckpointShown"];

interface Props {
  state: RunState;
  args: Readonly<Record<string, unknown>>;
  onClose: () => void;
  onChanged: () => void;
}

/** Steps that were completed by a checkpoint: their outputs may be taken to have been others. */
function doneBy(places: readonly Checkpoint[], at: number | null): string[] {
  const done = places.filter(
    (one) => !one.undone && one.number <= (at ?? 0) && one.what === "completed",
  );
  return [...new Set(done.map((one) => one.node_id))];
}

function useCheckpoints(run: string) {
  return useQuery({
    queryKey: ["run", run, "checkpoints"],
    queryFn: async ({ signal }) =>
      (await request("get", "/api/v1/runs/{run}/checkpoints", { path: { run }, signal })).data,
    staleTime: 0,
  });
}

/** What would be repeated; nothing is asked before it is known where to, and that all values can be read. */
function usePreview(run: string, way: Way, at: number | null, edits: ReturnType<typeof readEdits>) {
  return useQuery({
    queryKey: ["run", run, way, at, way === "branch" ? edits.body : null],
    queryFn: async () => {
      const path = { run };
      if (way === "rewind") {
        return (
          await request("post", "/api/v1/runs/{run}/rewind", {
            path,
            body: { to: at, preview: true },
          })
        ).data.repeats;
      }
      const body = { at, ...edits.body, preview: true };
      return (await request("post", "/api/v1/runs/{run}/branch", { path, body })).data.repeats;
    },
    enabled: at !== null && (way === "rewind" || edits.wrong.length === 0),
    staleTime: 0,
  });
}

export function Rewind({ state, args, onClose, onChanged }: Props) {
  const run = state.run_id;
  const [way, setWay] = useState<Way>("rewind");
  const [at, setAt] = useState<number | null>(null);
  const [edits, setEdits] = useState<Edits>(NO_EDITS);
  const [refused, setRefused] = useState<unknown>(null);
  const places = useCheckpoints(run);
  const read = readEdits(edits);
  const preview = usePreview(run, way, at, read);
  const act = async () => {
    try {
      if (way === "rewind") {
        await request("post", "/api/v1/runs/{run}/rewind", { path: { run }, body: { to: at } });
        onChanged();
      } else {
        const { data } = await request("post", "/api/v1/runs/{run}/branch", {
          path: { run },
          body: { at, ...read.body },
        });
        if (data.run_id) go(runPath(data.run_id));
      }
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  const ready =
    at !== null && preview.data !== undefined && (way === "rewind" || read.wrong.length === 0);
  return (
    <Dialog title="Go back to a checkpoint" onClose={onClose}>
      <div className="bar" role="radiogroup" aria-label="Where">
        <label className="plain-label">
          <input
            type="radio"
            name="way"
            checked={way === "rewind"}
            onChange={() => setWay("rewind")}
          />{" "}
          In this run
        </label>
        <label className="plain-label">
          <input
            type="radio"
            name="way"
            checked={way === "branch"}
            onChange={() => setWay("branch")}
          />{" "}
          In a new run, which leaves this as it is
        </label>
      </div>
      {places.error && <Refusal error={places.error} />}
      {places.isPending && !places.error && <Loading what="checkpoints" />}
      {places.data && <Places places={places.data} at={at} onChoose={setAt} />}
      {way === "branch" && at !== null && (
        <Changed
          run={run}
          args={args}
          steps={doneBy(places.data ?? [], at)}
          edits={edits}
          onChange={setEdits}
        />
      )}
      {at !== null && (way === "rewind" || read.wrong.length === 0) && (
        <Preview repeats={preview.data} error={preview.error} asking={preview.isPending} />
      )}
      {refused !== null && <Refusal error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Leave it
        </button>
        <button type="button" className="primary" disabled={!ready} onClick={act}>
          {way === "rewind" ? "Go back" : "Start the new run"}
        </button>
      </div>
    </Dialog>
  );
}

interface PlacesProps {
  places: readonly Checkpoint[];
  at: number | null;
  onChoose: (at: number) => void;
}

function Places({ places, at, onChoose }: PlacesProps) {
  return (
    <Choices
      label="Checkpoint"
      role="radiogroup"
      // The newest first: that is where one goes back to most.
      all={places.filter((one) => !one.undone).reverse()}
      name={(one) => one.node_id}
      first={
        <label>
          <input type="radio" name="at" checked={at === 0} onChange={() => onChoose(0)} />
          The beginning
        </label>
      }
      line={(one) => (
        <label key={one.number}>
          <input
            type="radio"
            name="at"
            checked={at === one.number}
            onChange={() => onChoose(one.number)}
          />
          <span className="grow cut">
            after {one.node_id} ({words(one.what)})
          </span>
          <span className="muted small">{clock(one.at)}</span>
        </label>
      )}
    />
  );
}

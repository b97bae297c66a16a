// Goes back to a checkpoint: rewinds this run, or branches into a new run with changed values.
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { request, type Schemas } from "../api/client";
import { Dialog } from "../parts/dialog";
import { ErrorMessage, Loading } from "../parts/feedback";
import { clock } from "../parts/format";
import { words } from "../parts/status";
import { navigate, runPath } from "../route";
import type { RunState } from "./live-run";
import { NO_OVERRIDES, type OverrideDrafts, Overrides, parseOverrides } from "./overrides";
import { RepeatPreview } from "./repeat-preview";
import { StepPicker } from "./step-picker";

type Mode = "rewind" | "branch";
type Checkpoint = Schemas["CheckpointShown"];

interface Props {
  state: RunState;
  args: Readonly<Record<string, unknown>>;
  onClose: () => void;
  onChanged: () => void;
}

/** Steps completed by a checkpoint: a branch may override their outputs. */
function completedBy(checkpoints: readonly Checkpoint[], at: number | null): string[] {
  const done = checkpoints.filter(
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

/** Steps that would run again. Waits for a chosen checkpoint and valid overrides. */
function usePreview(
  run: string,
  mode: Mode,
  at: number | null,
  overrides: ReturnType<typeof parseOverrides>,
) {
  return useQuery({
    queryKey: ["run", run, mode, at, mode === "branch" ? overrides.body : null],
    queryFn: async () => {
      const path = { run };
      if (mode === "rewind") {
        return (
          await request("post", "/api/v1/runs/{run}/rewind", {
            path,
            body: { to: at, preview: true },
          })
        ).data.repeats;
      }
      const body = { at, ...overrides.body, preview: true };
      return (await request("post", "/api/v1/runs/{run}/branch", { path, body })).data.repeats;
    },
    enabled: at !== null && (mode === "rewind" || overrides.wrong.length === 0),
    staleTime: 0,
  });
}

export function CheckpointDialog({ state, args, onClose, onChanged }: Props) {
  const run = state.run_id;
  const [mode, setMode] = useState<Mode>("rewind");
  const [at, setAt] = useState<number | null>(null);
  const [drafts, setDrafts] = useState<OverrideDrafts>(NO_OVERRIDES);
  const [refused, setRefused] = useState<unknown>(null);
  const checkpoints = useCheckpoints(run);
  const overrides = parseOverrides(drafts);
  const preview = usePreview(run, mode, at, overrides);
  const act = async () => {
    try {
      if (mode === "rewind") {
        await request("post", "/api/v1/runs/{run}/rewind", { path: { run }, body: { to: at } });
        onChanged();
      } else {
        const { data } = await request("post", "/api/v1/runs/{run}/branch", {
          path: { run },
          body: { at, ...overrides.body },
        });
        if (data.run_id) navigate(runPath(data.run_id));
      }
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  const ready =
    at !== null &&
    preview.data !== undefined &&
    (mode === "rewind" || overrides.wrong.length === 0);
  return (
    <Dialog title="Go back to a checkpoint" onClose={onClose}>
      <div className="bar" role="radiogroup" aria-label="Target">
        <label className="plain-label">
          <input
            type="radio"
            name="way"
            checked={mode === "rewind"}
            onChange={() => setMode("rewind")}
          />{" "}
          In this run
        </label>
        <label className="plain-label">
          <input
            type="radio"
            name="way"
            checked={mode === "branch"}
            onChange={() => setMode("branch")}
          />{" "}
          In a new run; this run stays unchanged
        </label>
      </div>
      {checkpoints.error && <ErrorMessage error={checkpoints.error} />}
      {checkpoints.isPending && !checkpoints.error && <Loading what="checkpoints" />}
      {checkpoints.data && (
        <CheckpointList checkpoints={checkpoints.data} at={at} onChoose={setAt} />
      )}
      {mode === "branch" && at !== null && (
        <Overrides
          run={run}
          args={args}
          steps={completedBy(checkpoints.data ?? [], at)}
          edits={drafts}
          onChange={setDrafts}
        />
      )}
      {at !== null && (mode === "rewind" || overrides.wrong.length === 0) && (
        <RepeatPreview repeats={preview.data} error={preview.error} loading={preview.isPending} />
      )}
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" className="primary" disabled={!ready} onClick={act}>
          {mode === "rewind" ? "Go back" : "Start the new run"}
        </button>
      </div>
    </Dialog>
  );
}

interface CheckpointListProps {
  checkpoints: readonly Checkpoint[];
  at: number | null;
  onChoose: (at: number) => void;
}

function CheckpointList({ checkpoints, at, onChoose }: CheckpointListProps) {
  return (
    <StepPicker
      label="Checkpoint"
      role="radiogroup"
      // Newest first: users mostly go back to recent checkpoints.
      all={checkpoints.filter((one) => !one.undone).reverse()}
      name={(one) => one.node_id}
      first={
        <label>
          <input type="radio" name="at" checked={at === 0} onChange={() => onChoose(0)} />
          Start of the run
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

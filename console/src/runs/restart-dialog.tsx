// Restarts chosen steps of a run in a new run.
import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { request } from "../api/client";
import { Dialog } from "../parts/dialog";
import { ErrorMessage } from "../parts/feedback";
import { words } from "../parts/status";
import { navigate, runPath } from "../route";
import type { RunState } from "./live-run";
import { RepeatPreview } from "./repeat-preview";
import { StepPicker } from "./step-picker";

const FAILED = new Set(["failed", "timed_out", "blocked", "cancelled"]);

export function RestartDialog({ state, onClose }: { state: RunState; onClose: () => void }) {
  const run = state.run_id;
  const [from, setFrom] = useState<ReadonlySet<string>>(
    () =>
      new Set(
        state.node_results.filter((node) => FAILED.has(node.status)).map((node) => node.node_id),
      ),
  );
  const [refused, setRefused] = useState<unknown>(null);
  const steps = useMemo(() => [...from], [from]);
  const preview = useQuery({
    queryKey: ["run", run, "restart", steps],
    queryFn: async () =>
      (
        await request("post", "/api/v1/runs/{run}/restart", {
          path: { run },
          body: { from: steps, preview: true },
        })
      ).data,
    enabled: from.size > 0,
  });
  const restart = async () => {
    try {
      const { data } = await request("post", "/api/v1/runs/{run}/restart", {
        path: { run },
        body: { from: steps },
      });
      if (data.run_id) navigate(runPath(data.run_id));
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  const toggle = (id: string) => {
    const next = new Set(from);
    if (!next.delete(id)) next.add(id);
    setFrom(next);
  };
  return (
    <Dialog title="Restart in a new run" onClose={onClose}>
      <p>
        The chosen steps and all steps that depend on them run again. The others keep their outputs.
      </p>
      <StepPicker
        label="Steps to run again"
        role="group"
        all={state.node_results}
        name={(node) => node.node_id}
        line={(node) => (
          <label key={node.node_id}>
            <input
              type="checkbox"
              checked={from.has(node.node_id)}
              onChange={() => toggle(node.node_id)}
            />
            <span className="grow cut">{node.node_id}</span>
            <span className="muted small">{words(node.status)}</span>
          </label>
        )}
      />
      {from.size === 0 ? (
        <p className="muted">Choose at least one step.</p>
      ) : (
        <RepeatPreview
          repeats={preview.data?.repeats}
          error={preview.error}
          loading={preview.isPending}
        />
      )}
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Cancel
        </button>
        <button
          type="button"
          className="primary"
          disabled={from.size === 0 || !preview.data}
          onClick={restart}
        >
          Start the new run
        </button>
      </div>
    </Dialog>
  );
}

// Actions on a run. Only those that its status and the user's role allow are shown.
import { useState } from "react";
import { request } from "../api/client";
import { Dialog } from "../parts/dialog";
import { ErrorMessage } from "../parts/feedback";
import { ended } from "../parts/status";
import { usePermission } from "../session";
import { CheckpointDialog } from "./checkpoint-dialog";
import type { RunState } from "./live-run";
import { RestartDialog } from "./restart-dialog";

type OpenDialog = "cancel" | "restart" | "rewind" | null;

interface Props {
  state: RunState;
  args: Readonly<Record<string, unknown>>;
  onChanged: () => void;
}

export function RunActions({ state, args, onChanged }: Props) {
  const [mayStop, mayStart] = [usePermission("run:cancel"), usePermission("workflow:execute")];
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const run = state.run_id;
  const send = async (what: "pause" | "resume" | "retry") => {
    setBusy(true);
    setRefused(null);
    try {
      await request("post", `/api/v1/runs/{run}/${what}`, { path: { run } });
      onChanged();
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  const over = ended(state.status);
  const stopping = state.status === "cancelling";
  // A run that waits for an approval resumes when it is decided.
  const paused = state.status === "paused" && state.pause_reason !== "approval";
  return (
    <>
      <div className="bar">
        {mayStop && !over && !stopping && !paused && (
          <button type="button" disabled={busy} onClick={() => send("pause")}>
            Pause
          </button>
        )}
        {mayStart && paused && (
          <button type="button" disabled={busy} onClick={() => send("resume")}>
            Resume
          </button>
        )}
        {mayStart && state.status === "failed" && (
          <button type="button" disabled={busy} onClick={() => send("retry")}>
            Retry
          </button>
        )}
        {mayStart && over && (
          <button type="button" onClick={() => setDialog("restart")}>
            Restart…
          </button>
        )}
        {mayStart && !stopping && (
          <button type="button" onClick={() => setDialog("rewind")}>
            Go back…
          </button>
        )}
        {mayStop && !over && (
          <button
            type="button"
            className="danger"
            disabled={stopping}
            onClick={() => setDialog("cancel")}
          >
            Cancel…
          </button>
        )}
      </div>
      {refused !== null && <ErrorMessage error={refused} />}
      {dialog === "cancel" && (
        <CancelDialog run={run} onClose={() => setDialog(null)} onChanged={onChanged} />
      )}
      {dialog === "restart" && <RestartDialog state={state} onClose={() => setDialog(null)} />}
      {dialog === "rewind" && (
        <CheckpointDialog
          state={state}
          args={args}
          onClose={() => setDialog(null)}
          onChanged={onChanged}
        />
      )}
    </>
  );
}

interface CancelProps {
  run: string;
  onClose: () => void;
  onChanged: () => void;
}

function CancelDialog({ run, onClose, onChanged }: CancelProps) {
  const [reason, setReason] = useState("");
  const [refused, setRefused] = useState<unknown>(null);
  const cancel = async () => {
    try {
      const body = reason.trim() === "" ? {} : { reason: reason.trim() };
      await request("post", "/api/v1/runs/{run}/cancel", { path: { run }, body });
      onChanged();
      onClose();
    } catch (error) {
      setRefused(error);
    }
  };
  return (
    <Dialog title="Cancel this run?" onClose={onClose}>
      <p>Running steps are stopped and no further steps start. This cannot be undone.</p>
      <div className="field">
        <label htmlFor="reason">Reason (recorded in the journal)</label>
        <input id="reason" value={reason} onChange={(event) => setReason(event.target.value)} />
      </div>
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Keep running
        </button>
        <button type="button" className="danger" onClick={cancel}>
          Cancel the run
        </button>
      </div>
    </Dialog>
  );
}

// Changing the course of a run. What its status or one's role does not allow is not offered.
import { useState } from "react";
import { request } from "../api/client";
import { Dialog } from "../parts/dialog";
import { Refusal } from "../parts/feedback";
import { ended } from "../parts/status";
import { useMay } from "../session";
import { Rewind } from "./checkpoint-dialog";
import type { RunState } from "./live";
import { Restart } from "./restart-dialog";

type Asked = "cancel" | "restart" | "rewind" | null;

interface Props {
  state: RunState;
  args: Readonly<Record<string, unknown>>;
  onChanged: () => void;
}

export function Course({ state, args, onChanged }: Props) {
  const [mayStop, mayStart] = [useMay("run:cancel"), useMay("workflow:execute")];
  const [asked, setAsked] = useState<Asked>(null);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const run = state.run_id;
  const tell = async (what: "pause" | "resume" | "retry") => {
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
  // One that waits for people goes on when they answer.
  const paused = state.status === "paused" && state.pause_reason !== "approval";
  return (
    <>
      <div className="bar">
        {mayStop && !over && !stopping && !paused && (
          <button type="button" disabled={busy} onClick={() => tell("pause")}>
            Pause
          </button>
        )}
        {mayStart && paused && (
          <button type="button" disabled={busy} onClick={() => tell("resume")}>
            Resume
          </button>
        )}
        {mayStart && state.status === "failed" && (
          <button type="button" disabled={busy} onClick={() => tell("retry")}>
            Retry
          </button>
        )}
        {mayStart && over && (
          <button type="button" onClick={() => setAsked("restart")}>
            Restart…
          </button>
        )}
        {mayStart && !stopping && (
          <button type="button" onClick={() => setAsked("rewind")}>
            Go back…
          </button>
        )}
        {mayStop && !over && (
          <button
            type="button"
            className="danger"
            disabled={stopping}
            onClick={() => setAsked("cancel")}
          >
            Cancel…
          </button>
        )}
      </div>
      {refused !== null && <Refusal error={refused} />}
      {asked === "cancel" && (
        <Cancel run={run} onClose={() => setAsked(null)} onChanged={onChanged} />
      )}
      {asked === "restart" && <Restart state={state} onClose={() => setAsked(null)} />}
      {asked === "rewind" && (
        <Rewind state={state} args={args} onClose={() => setAsked(null)} onChanged={onChanged} />
      )}
    </>
  );
}

interface CancelProps {
  run: string;
  onClose: () => void;
  onChanged: () => void;
}

function Cancel({ run, onClose, onChanged }: CancelProps) {
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
      <p>What is under way is stopped, and nothing more is started. This cannot be undone.</p>
      <div className="field">
        <label htmlFor="reason">Reason, for the journal</label>
        <input id="reason" value={reason} onChange={(event) => setReason(event.target.value)} />
      </div>
      {refused !== null && <Refusal error={refused} />}
      <div className="bar">
        <span className="grow" />
        <button type="button" onClick={onClose}>
          Keep it going
        </button>
        <button type="button" className="danger" onClick={cancel}>
          Cancel the run
        </button>
      </div>
    </Dialog>
  );
}

// A question before something is done: what will happen, and the answer when it was refused.
import { type ReactNode, useState } from "react";
import { Dialog } from "./dialog";
import { ErrorMessage } from "./feedback";

interface Props {
  title: string;
  /** What the button says. */
  act: string;
  danger?: boolean;
  onClose: () => void;
  /** Does it. What it throws is shown. */
  onAct: () => Promise<void>;
  children: ReactNode;
}

export function Confirm({ title, act, danger = false, onClose, onAct, children }: Props) {
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  const go = async () => {
    setBusy(true);
    setRefused(null);
    try {
      await onAct();
      onClose();
    } catch (error) {
      setRefused(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      {refused !== null && <ErrorMessage error={refused} />}
      <div className="bar">
        <button
          type="button"
          className={danger ? "danger" : "primary"}
          disabled={busy}
          onClick={go}
        >
          {act}
        </button>
        <button type="button" onClick={onClose}>
          Not now
        </button>
      </div>
    </Dialog>
  );
}

// A confirmation dialog that also shows the error when the action fails.
import { type ReactNode, useState } from "react";
import { Dialog } from "./dialog";
import { ErrorMessage } from "./feedback";

interface Props {
  title: string;
  /** Label of the button. */
  act: string;
  danger?: boolean;
  onClose: () => void;
  /** Performs the action. The dialog shows what it throws. */
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
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

// Download of a run's audit packet, which can be verified offline.
import { useState } from "react";
import { readProblem } from "../api/client";
import { ErrorMessage } from "../parts/feedback";
import { usePermission } from "../session";

/** How long the object URL stays valid for the download. */
const KEPT_MS = 60_000;

export function Packet({ run }: { run: string }) {
  const may = usePermission("audit:read");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<unknown>(null);
  if (!may) return null;
  const download = async () => {
    setBusy(true);
    setRefused(null);
    try {
      const response = await fetch(`/api/v1/runs/${encodeURIComponent(run)}/audit`, {
        credentials: "same-origin",
      });
      if (!response.ok) throw await readProblem(response);
      const url = URL.createObjectURL(await response.blob());
      const link = document.createElement("a");
      link.href = url;
      link.download = `${run}.packet.txt`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(url), KEPT_MS);
    } catch (error) {
      setRefused(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section className="field">
      <h2>Audit packet</h2>
      <p className="muted">
        Definition, journal, chain and seals in one file. It can be verified without this server.
      </p>
      <div>
        <button type="button" disabled={busy} onClick={download}>
          {busy ? "Preparing…" : "Download the packet"}
        </button>
      </div>
      {refused !== null && <ErrorMessage error={refused} />}
    </section>
  );
}

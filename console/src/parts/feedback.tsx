// What a page says when it has nothing else to say: that it loads, that there is nothing, that it was refused.
import type { ReactNode } from "react";
import { Problem } from "../api/client";

/** Something is being fetched. */
export function Loading({ what }: { what: string }) {
  return (
    <p className="state" role="status">
      Loading {what}…
    </p>
  );
}

/** There is nothing, and why. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** What was refused, and what to do about it. */
export function ErrorMessage({ error }: { error: unknown }) {
  const known = error instanceof Problem ? error : null;
  const title = known?.message ?? (error instanceof Error ? error.message : "something went wrong");
  const page = known && /^[a-z_]+$/.test(known.code) && known.status > 0 ? known.code : null;
  return (
    <div className="refusal" role="alert">
      <strong>{title}</strong>
      {known?.remedy && <span>{known.remedy}</span>}
      {known?.errors.map((one) => (
        <span key={one}>{one}</span>
      ))}
      {page && (
        <a href={`/api/docs/errors/${page}`} target="_blank" rel="noreferrer">
          {page}
        </a>
      )}
    </div>
  );
}

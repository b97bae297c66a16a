// Loading, empty and error states of a page.
import type { ReactNode } from "react";
import { Problem } from "../api/client";

export function Loading({ what }: { what: string }) {
  return (
    <p className="state" role="status">
      Loading {what}…
    </p>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <strong>{title}</strong>
      {children}
    </div>
  );
}

/** An error with its remedy and a link to its documentation. */
export function ErrorMessage({ error }: { error: unknown }) {
  const known = error instanceof Problem ? error : null;
  const title = known?.message ?? (error instanceof Error ? error.message : "unexpected error");
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

// Parts of the restart and checkpoint dialogs: a searchable list, and a preview of repeated steps.
import { type ReactNode, useState } from "react";
import { ErrorMessage, Loading } from "../parts/feedback";
import { visible } from "../parts/value";

/** Most steps named in a preview. */
const NAMED_MAX = 30;
/** Most entries in the list; the search finds the others. */
const LISTED_MAX = 100;
/** Number of entries from which a search field is shown. */
const SEARCHED_FROM = 12;

interface RepeatPreviewProps {
  repeats: readonly string[] | undefined;
  error: unknown;
  loading: boolean;
}

/** Names the steps that would run again. */
export function RepeatPreview({ repeats, error, loading }: RepeatPreviewProps) {
  if (error) return <ErrorMessage error={error} />;
  if (loading || !repeats) return <Loading what="the preview" />;
  return (
    <div className="note" role="status">
      {repeats.length === 0 ? (
        "No step runs again."
      ) : (
        <>
          <strong>Runs again:</strong> {visible(repeats.slice(0, NAMED_MAX).join(", "))}
          {repeats.length > NAMED_MAX && ` and ${repeats.length - NAMED_MAX} more`}
        </>
      )}
    </div>
  );
}

interface StepPickerProps<T> {
  label: string;
  role: "group" | "radiogroup";
  all: readonly T[];
  /** Text that the search matches. */
  name: (one: T) => string;
  line: (one: T) => ReactNode;
  /** An entry above the list that the search does not hide. */
  first?: ReactNode;
}

/** A list of choices with a search field. */
export function StepPicker<T>({ label, role, all, name, line, first }: StepPickerProps<T>) {
  const [typed, setTyped] = useState("");
  const found = typed === "" ? all : all.filter((one) => name(one).includes(typed));
  return (
    <>
      {all.length >= SEARCHED_FROM && (
        <input
          type="search"
          aria-label={`Search: ${label}`}
          placeholder="Step name"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      )}
      <div className="choices" role={role} aria-label={label}>
        {first}
        {found.slice(0, LISTED_MAX).map(line)}
        {found.length > LISTED_MAX && (
          <p className="muted small">{found.length - LISTED_MAX} more: refine the search.</p>
        )}
        {found.length === 0 && <p className="muted small">No step matches.</p>}
      </div>
    </>
  );
}

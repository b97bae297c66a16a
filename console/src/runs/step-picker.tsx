// What doing steps again has in common, wherever it begins: a list to choose from, and what would be repeated.
import { type ReactNode, useState } from "react";
import { ErrorMessage, Loading } from "../parts/feedback";
import { visible } from "../parts/value";

/** Most steps that a preview names. */
const NAMED_MAX = 30;
/** Most lines of a list at once; others are found by typing. */
const LISTED_MAX = 100;
/** Lines from which on typing helps. */
const SEARCHED_FROM = 12;

interface RepeatPreviewProps {
  repeats: readonly string[] | undefined;
  error: unknown;
  loading: boolean;
}

/** What would be done a second time. */
export function RepeatPreview({ repeats, error, loading }: RepeatPreviewProps) {
  if (error) return <ErrorMessage error={error} />;
  if (loading || !repeats) return <Loading what="the preview" />;
  return (
    <div className="note" role="status">
      {repeats.length === 0 ? (
        "No step is done a second time."
      ) : (
        <>
          <strong>Done a second time:</strong> {visible(repeats.slice(0, NAMED_MAX).join(", "))}
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
  /** What a line is found by. */
  name: (one: T) => string;
  line: (one: T) => ReactNode;
  /** A line that is always there. */
  first?: ReactNode;
}

/** Lines to choose from: of many, those that match what is typed. */
export function StepPicker<T>({ label, role, all, name, line, first }: StepPickerProps<T>) {
  const [typed, setTyped] = useState("");
  const found = typed === "" ? all : all.filter((one) => name(one).includes(typed));
  return (
    <>
      {all.length >= SEARCHED_FROM && (
        <input
          type="search"
          aria-label={`Find in: ${label}`}
          placeholder="Name of a step"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      )}
      <div className="choices" role={role} aria-label={label}>
        {first}
        {found.slice(0, LISTED_MAX).map(line)}
        {found.length > LISTED_MAX && (
          <p className="muted small">{found.length - LISTED_MAX} more: type a part of the name.</p>
        )}
        {found.length === 0 && <p className="muted small">No step has that in its name.</p>}
      </div>
    </>
  );
}

// The list of steps or checkpoints in the restart and checkpoint dialogs.
import { type ReactNode, useState } from "react";

/** Most entries in the list; the search finds the others. */
const LISTED_MAX = 100;
/** Number of entries from which a search field is shown. */
const SEARCHED_FROM = 12;

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
      {/* biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles of this element take a label */}
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

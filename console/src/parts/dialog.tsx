// A modal dialog.
import { type ReactNode, useEffect, useId, useRef } from "react";

/** Open as long as it is rendered. Escape closes it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={element} aria-labelledby={heading} onCancel={onClose}>
      <div>
        <h1 id={heading}>{title}</h1>
        {children}
      </div>
    </dialog>
  );
}

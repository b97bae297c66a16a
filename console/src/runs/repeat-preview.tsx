// The preview of a restart, rewind or branch.
import { ErrorMessage, Loading } from "../parts/feedback";
import { visible } from "../parts/value";

/** Most steps named in a preview. */
const NAMED_MAX = 30;

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

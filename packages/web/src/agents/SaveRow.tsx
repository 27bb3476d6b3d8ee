import { useEffect, useRef, useState } from "react";
import { wordsFor } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";

/** The button of a form, and what came of pressing it. */
export function SaveRow({ busy, error }: { busy: boolean; error: unknown }) {
  const [saved, setSaved] = useState(false);
  const was = useRef(false);
  useEffect(() => {
    if (was.current && !busy) setSaved(error === null);
    was.current = busy;
  }, [busy, error]);
  return (
    <div className="flex items-center gap-3">
      <Button type="submit" busy={busy}>
        Save
      </Button>
      <p role="status" className={`text-sm ${error === null ? "text-good" : "text-danger"}`}>
        {error !== null && wordsFor(error)}
        {error === null && saved && (
          <span className="inline-flex items-center gap-1">
            <Icon name="check" size={14} /> Saved
          </span>
        )}
      </p>
    </div>
  );
}

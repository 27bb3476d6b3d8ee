import { useEffect, useRef, useState } from "react";
import { Button } from "../ui/Button.tsx";
import { FormProblem } from "../ui/Form.tsx";
import { Icon } from "../ui/Icon.tsx";

/** The button of a `Form`, and what came of pressing it. */
export function SaveRow({ busy, error }: { busy: boolean; error: unknown }) {
  const [saved, setSaved] = useState(false);
  const was = useRef(false);
  useEffect(() => {
    setSaved(was.current && !busy && error === null);
    was.current = busy;
  }, [busy, error]);
  return (
    <div className="flex items-center gap-3">
      <Button type="submit" busy={busy}>
        Save
      </Button>
      <FormProblem />
      <p role="status" className="text-sm text-good">
        {saved && (
          <span className="inline-flex items-center gap-1">
            <Icon name="check" size={14} /> Saved
          </span>
        )}
      </p>
    </div>
  );
}

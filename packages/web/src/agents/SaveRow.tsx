import { useEffect, useRef, useState } from "react";
import { Button } from "../ui/Button.tsx";
import { FormProblem } from "../ui/Form.tsx";
import { Icon } from "../ui/Icon.tsx";

/** The save button of a `Form` and its result. */
export function SaveRow({ busy, error }: { busy: boolean; error: unknown }) {
  const [saved, setSaved] = useState(false);
  const wasBusy = useRef(false);
  useEffect(() => {
    setSaved(wasBusy.current && !busy && error === null);
    wasBusy.current = busy;
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

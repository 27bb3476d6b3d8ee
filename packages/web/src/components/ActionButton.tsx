import { useState } from "react";
import { describeError } from "../lib/errors.ts";
import { Button } from "../ui/Button.tsx";
import { useUses } from "./action-target.ts";
import { useComponentAction } from "./component-action.ts";
import { ConfirmAgain } from "./Uses.tsx";

interface ActionButtonProps {
  action: string;
  label: string;
  first: boolean;
}

/** The first button of a row is emphasized. A button that was pressed asks before it is pressed again. */
export function ActionButton({ action, label, first }: ActionButtonProps) {
  const { enabled, busy, error, submit } = useComponentAction(action);
  const [asking, setAsking] = useState(false);
  const last = useUses([action]).at(-1);
  return (
    <span className="inline-flex max-w-full flex-col">
      <Button
        size="small"
        look={first && !last ? "primary" : "secondary"}
        {...(last && { icon: "check" as const })}
        busy={busy}
        disabled={!enabled}
        onClick={() => (last ? setAsking(true) : submit(action))}
        className="max-w-full pointer-coarse:h-11"
      >
        <span className="truncate">{label}</span>
      </Button>
      <span role="alert" className="text-sm text-danger not-empty:mt-1">
        {error !== null && describeError(error)}
      </span>
      {asking && last && (
        <ConfirmAgain
          last={last}
          label={label}
          onBack={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            void submit(action);
          }}
        />
      )}
    </span>
  );
}

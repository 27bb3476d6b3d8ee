import { useState } from "react";
import { TextField } from "../ui/Field.tsx";

/** A code of the second factor: of the authenticator app, or a recovery code. */
export function CodeField({ autoFocus = true }: { autoFocus?: boolean }) {
  const [isRecovery, setRecovery] = useState(false);
  return (
    <div className="flex flex-col items-start gap-2">
      <div className="w-full">
        {isRecovery ? <RecoveryCodeField /> : <AppCodeField autoFocus={autoFocus} />}
      </div>
      <button
        type="button"
        className="rounded-sm text-sm font-medium text-accent underline-offset-2 hover:underline"
        onClick={() => setRecovery(!isRecovery)}
      >
        {isRecovery ? "Use the app instead" : "Use a recovery code instead"}
      </button>
    </div>
  );
}

const RecoveryCodeField = () => (
  <TextField
    label="Recovery code"
    name="code"
    autoFocus
    required
    maxLength={64}
    autoComplete="off"
    autoCapitalize="none"
    spellCheck={false}
    hint="One of the ten that you stored. Each can be used once."
  />
);

export const AppCodeField = ({ autoFocus }: { autoFocus: boolean }) => (
  <TextField
    label="Code"
    name="code"
    autoFocus={autoFocus}
    required
    maxLength={16}
    inputMode="numeric"
    autoComplete="one-time-code"
    spellCheck={false}
    pattern="\s*(\d\s*){6}"
    title="Six digits, please."
    hint="The six digits that your authenticator app shows."
  />
);

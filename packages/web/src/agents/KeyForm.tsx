import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { type FormEvent, useRef, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError, fieldErrorsOf } from "../lib/errors.ts";
import { Button } from "../ui/Button.tsx";
import { TextField } from "../ui/Field.tsx";
import { KeyTestResult, useKeyTest } from "./key-test.tsx";
import { cleanKey, keyDoubt, keyProblem } from "./keys.ts";

interface KeyFormProps {
  agent: AgentProfile;
  onStored: () => void;
  /** The agent can answer without this key. */
  onCancel: (() => void) | null;
}

/** Stores a key. Refuses text that cannot be a key, and asks to confirm an unusual one. */
export function KeyForm({ agent, onStored, onCancel }: KeyFormProps) {
  const { provider, username, key_configured } = agent;
  const client = useClient();
  const field = useRef<HTMLInputElement>(null);
  const saving = useAction();
  const test = useKeyTest(username);
  const [problem, setProblem] = useState<string | null>(null);
  const [doubt, setDoubt] = useState<string | null>(null);

  /** The key in the field, or null after showing why it cannot be a key. */
  const validKey = (): string | null => {
    const key = cleanKey(field.current?.value ?? "");
    const why = keyProblem(key);
    setProblem(why);
    if (why !== null) field.current?.focus();
    return why === null ? key : null;
  };
  const save = async (event: FormEvent) => {
    event.preventDefault();
    const key = validKey();
    if (key === null) return;
    const why = keyDoubt(provider ?? "", key);
    if (why !== null && doubt === null) return setDoubt(why);
    const stored = await saving.run(async () => {
      await client.setAgentKey({ agent_username: username, api_key: key });
      await client.model.refreshAgents();
    });
    // This form closes when the stored key is shown. Another one may be open by now.
    if (stored && field.current !== null) onStored();
  };
  const testKey = () => {
    const key = validKey();
    if (key !== null) test.start(key);
  };
  const clear = () => {
    setProblem(null);
    setDoubt(null);
    saving.clearError();
    test.clear();
  };
  const refused =
    saving.error === null
      ? undefined
      : (fieldErrorsOf(saving.error).api_key ?? describeError(saving.error));
  const hint = doubt && (
    <span className="text-warn">{doubt} Have another look, or save it as it is.</span>
  );
  return (
    <form noValidate onSubmit={save} className="flex flex-col gap-3">
      <TextField
        label={key_configured ? "New API key" : "Your API key"}
        hint={hint}
        error={problem ?? refused}
        ref={field}
        name="api_key"
        type="password"
        autoComplete="off"
        placeholder="Paste the key"
        onInput={clear}
      />
      <div className="flex flex-wrap items-center gap-2">
        <Button type="submit" look={doubt === null ? "primary" : "secondary"} busy={saving.busy}>
          {doubt === null ? "Save" : "Save anyway"}
        </Button>
        <Button look="quiet" busy={test.busy} onClick={testKey}>
          Test this key
        </Button>
        {onCancel && (
          <Button look="quiet" onClick={onCancel}>
            Cancel
          </Button>
        )}
      </div>
      <KeyTestResult {...test} />
    </form>
  );
}

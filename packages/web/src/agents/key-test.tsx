import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { Icon } from "../ui/Icon.tsx";

interface KeyTest {
  busy: boolean;
  error: unknown;
  result: OutputOf<"testAgentKey"> | null;
  /** Tests the given key, or the stored one. */
  start: (key?: string) => void;
  /** Clears the result. */
  clear: () => void;
}

/** Tests a key with one small call to the model. */
export function useKeyTest(agent_username: string): KeyTest {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [result, setResult] = useState<KeyTest["result"]>(null);
  const start = (key?: string) => {
    setResult(null);
    const given = key === undefined ? {} : { api_key: key };
    void run(async () => setResult(await client.testAgentKey({ agent_username, ...given })));
  };
  return { busy, error, result, start, clear: () => setResult(null) };
}

export function KeyTestResult({ busy, error, result }: KeyTest) {
  const bad = error !== null ? describeError(error) : result?.error?.message;
  return (
    <p
      role="status"
      className={`flex items-start gap-1.5 text-sm empty:hidden ${busy ? "text-ink-3" : result?.works ? "text-good" : "text-danger"}`}
    >
      {busy && "Asking the model…"}
      {!busy && (result || error !== null) && (
        <>
          <span className="mt-0.5">
            <Icon name={result?.works ? "check" : "alert"} size={15} />
          </span>
          {result?.works ? `It works: ${modelOf(result)} answered.` : bad}
        </>
      )}
    </p>
  );
}

const modelOf = ({ sandbox, model }: OutputOf<"testAgentKey">) =>
  sandbox ? "the sandbox model" : model;

import { useAgents, useClient } from "@parley/client/react";
import { giveSandboxKey } from "../agents/sandbox.ts";
import { useAction, wordsFor } from "../lib/action.ts";
import { navigate } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";

interface KeyMissingProps {
  /** The agent, which is one's own. */
  username: string;
  onRetry: () => Promise<unknown>;
}

/** The first thing that goes wrong for a newcomer; one press leads from it to an answer. */
export function KeyMissing({ username, onRetry }: KeyMissingProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const hasKey = useAgents().some((agent) => agent.username === username && agent.key_configured);
  const trySandbox = async () => {
    await giveSandboxKey(client, username);
    await onRetry();
  };
  const actions = hasKey ? (
    <Button size="small" icon="retry" busy={busy} onClick={() => run(onRetry)}>
      Try again
    </Button>
  ) : (
    <>
      <Button size="small" icon="spark" busy={busy} onClick={() => run(trySandbox)}>
        Try the sandbox
      </Button>
      <Button size="small" icon="key" onClick={() => navigate("/agents")}>
        Set a key
      </Button>
    </>
  );
  const what = hasKey ? "It had no API key then." : "It has no API key yet.";
  return (
    <Notice tone={error === null ? "warn" : "danger"} icon="key" actions={actions}>
      {error === null ? what : wordsFor(error)}
    </Notice>
  );
}

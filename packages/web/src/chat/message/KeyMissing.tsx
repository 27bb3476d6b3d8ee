import { useClient } from "@parley/client/react";
import { useLacksKey } from "../../agents/keys.ts";
import { giveSandboxKey } from "../../agents/sandbox.ts";
import { useAction } from "../../lib/action.ts";
import { describeError } from "../../lib/errors.ts";
import { usePolicy } from "../../lib/policy.ts";
import { agentPath, navigate } from "../../lib/router.ts";
import { Problem, ProblemButton } from "../Problem.tsx";

interface KeyMissingProps {
  /** The username of one's own agent. */
  username: string;
  onRetry: () => Promise<unknown>;
}

/** Under a turn that failed for lack of a key: one press stores a sandbox key and tries again. */
export function KeyMissing({ username, onRetry }: KeyMissingProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const canAnswer = !useLacksKey(username);
  const trySandbox = async () => {
    await giveSandboxKey(client, username);
    await onRetry();
  };
  const maySetKey = usePolicy().agents;
  const actions = canAnswer ? (
    <ProblemButton busy={busy} onClick={() => run(onRetry)}>
      Try again
    </ProblemButton>
  ) : (
    maySetKey && (
      <>
        <ProblemButton busy={busy} onClick={() => run(trySandbox)}>
          Try the sandbox
        </ProblemButton>
        <ProblemButton onClick={() => navigate(agentPath(username, "key"))}>
          Set a key
        </ProblemButton>
      </>
    )
  );
  if (error !== null) return <Problem actions={actions}>{describeError(error)}</Problem>;
  return (
    <Problem tone="quiet" icon="key" actions={actions}>
      {canAnswer ? "It had no API key then." : "It has no API key yet."}
    </Problem>
  );
}

import type { LocalMessage } from "@parley/client";
import { useAgents, useClient } from "@parley/client/react";
import type { TurnError } from "@parley/protocol";
import { turnSentence } from "@parley/protocol/text/turn-sentences";
import type { ReactNode } from "react";
import { startNewChat } from "../../agents/chats.ts";
import { isProvided } from "../../agents/keys.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent } from "../../lib/names.ts";
import { usePolicy } from "../../lib/policy.ts";
import { type AgentField, agentPath, navigate } from "../../lib/router.ts";
import { useChatContext } from "../context.ts";
import { Problem, ProblemButton } from "../Problem.tsx";
import { KeyMissing } from "./KeyMissing.tsx";

interface FailedTurnProps {
  message: LocalMessage;
  repeated: boolean;
  /** A button repeats the turn, here or under a later answer. */
  hasRetry: boolean;
  retry: () => Promise<unknown>;
  retryButton: ReactNode;
}

/** Why an agent's turn failed, with buttons that solve the problem. */
export default function FailedTurn(props: FailedTurnProps) {
  const { message, repeated, hasRetry, retry, retryButton } = props;
  const { isReadOnly } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const policy = usePolicy();
  const { sender, turn } = message;
  const agent = useAgents().find(({ username }) => username === sender.username);
  const error = turn?.error;
  if (!error) return null;
  const isOwner = isMyAgent(sender, me);
  const mayAct = isOwner && !isReadOnly && !repeated;
  if (mayAct && error.code === "key_missing")
    return <KeyMissing username={sender.username} onRetry={retry} />;
  const field = isOwner && !repeated && policy.agents ? remedyFor(error) : null;
  // The operator chooses the model of an agent that the operator pays for.
  const hasRemedy = field !== null && !(field === "model" && agent && isProvided(agent));
  const isTooLong = error.code === "context_too_long" && policy.start_chats !== "none";
  const actions = (
    <>
      {mayAct && isTooLong && (
        <ProblemButton onClick={() => startNewChat(client, sender.username).catch(showError)}>
          Start a new one
        </ProblemButton>
      )}
      {hasRemedy && (
        <ProblemButton onClick={() => navigate(agentPath(sender.username, field))}>
          {labels[field] ?? "Change the limits"}
        </ProblemButton>
      )}
      {retryButton}
    </>
  );
  return <Problem actions={actions}>{turnSentence(error, { isOwner, hasRetry })}</Problem>;
}

const labels: Readonly<Partial<Record<AgentField, string>>> = {
  key: "Set a key",
  model: "Choose a model",
};

/** The fields that solve what providers refuse, by reason. */
const remedies: Readonly<Record<string, AgentField>> = {
  no_credit: "key",
  sealed_key: "key",
  unknown_model: "model",
  request: "model",
  tools: "model",
  conversation: "model",
};

/** The field of the agent in which its owner can solve the problem. */
function remedyFor(error: TurnError): AgentField | null {
  switch (error.code) {
    case "key_rejected":
      return "key";
    case "provider_rate_limited":
    case "provider_refused":
    case "context_too_long":
    case "internal":
      return remedies[error.parameters?.reason ?? ""] ?? null;
    case "budget_exceeded": {
      const { limit = "spenders" } = error.parameters ?? {};
      // The owner cannot raise what the operator provides.
      if (limit === "operator_daily_tokens") return "key";
      return limit === "spenders" ? null : limit;
    }
    default:
      return null;
  }
}

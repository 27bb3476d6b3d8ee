import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import type { TurnError } from "@parley/protocol";
import { turnSentence } from "@parley/protocol/text/turn-sentences";
import type { ReactNode } from "react";
import { startNewChat } from "../../agents/chats.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent } from "../../lib/names.ts";
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
  const { sender, turn } = message;
  const error = turn?.error;
  if (!error) return null;
  const isOwner = isMyAgent(sender, me);
  const mayAct = isOwner && !isReadOnly && !repeated;
  if (mayAct && error.code === "key_missing")
    return <KeyMissing username={sender.username} onRetry={retry} />;
  const remedy = isOwner && !repeated ? remedyFor(error) : null;
  const actions = (
    <>
      {mayAct && error.code === "context_too_long" && (
        <ProblemButton onClick={() => startNewChat(client, sender.username).catch(showError)}>
          Start a new one
        </ProblemButton>
      )}
      {remedy && (
        <ProblemButton onClick={() => navigate(agentPath(sender.username, remedy.field))}>
          {remedy.label}
        </ProblemButton>
      )}
      {retryButton}
    </>
  );
  return <Problem actions={actions}>{turnSentence(error, { isOwner, hasRetry })}</Problem>;
}

/** The field of the agent in which its owner can solve the problem. */
function remedyFor(error: TurnError): { label: string; field: AgentField } | null {
  const ownKey = { label: "Set a key", field: "key" } as const;
  if (error.code === "key_rejected") return ownKey;
  if (error.code !== "budget_exceeded" || !error.parameters) return null;
  const { limit } = error.parameters;
  // The owner cannot raise what the operator provides.
  if (limit === "operator_daily_tokens") return ownKey;
  return limit === "spenders" ? null : { label: "Change the limits", field: limit };
}

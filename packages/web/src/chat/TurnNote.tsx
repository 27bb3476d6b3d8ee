import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { startNewChat } from "../agents/chats.ts";
import { exceededLimit } from "../agents/limits.ts";
import { useAction } from "../lib/action.ts";
import { connectionMessages, useConnection } from "../lib/connection.ts";
import { describeError, showError } from "../lib/errors.ts";
import { useSelf } from "../lib/me.ts";
import { isMyAgent } from "../lib/names.ts";
import { type AgentField, agentPath, navigate } from "../lib/router.ts";
import { useChatContext } from "./context.ts";
import { KeyMissing } from "./KeyMissing.tsx";
import { Problem, ProblemButton } from "./Problem.tsx";
import { mayControlTurn } from "./turn-rights.ts";

type TurnError = NonNullable<NonNullable<LocalMessage["turn"]>["error"]>;

interface TurnNoteProps {
  message: LocalMessage;
  /** The question was edited after this answer began. */
  outdated: boolean;
  /** The agent answered the same question again: only the latest answer offers buttons. */
  repeated: boolean;
}

/** How an agent's turn ended, with buttons to repeat it or to solve the problem. */
export function TurnNote({ message, outdated, repeated }: TurnNoteProps) {
  const { chat, isReadOnly } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const connection = useConnection();
  const { busy, error, run } = useAction();
  const { id, sender, turn, finalized_at } = message;
  if (!turn) return null;
  if (!finalized_at) return connection === "up" ? null : <Interrupted connection={connection} />;
  const isAllowed = !isReadOnly && !repeated && mayControlTurn(message, chat, me, client.model);
  const retry = () => client.retryAgentTurn({ message_id: id });
  const retryButton = (label: string) =>
    isAllowed && (
      <ProblemButton busy={busy} onClick={() => run(retry)}>
        {label}
      </ProblemButton>
    );
  if (error !== null)
    return <Problem actions={retryButton("Try again")}>{describeError(error)}</Problem>;
  if (outdated && isAllowed) {
    return (
      <Problem tone="quiet" icon="edit" actions={retryButton("Answer again")}>
        The question was edited since.
      </Problem>
    );
  }
  if (turn.status === "complete") return null;
  if (turn.status === "stopped") {
    return (
      <Problem tone="quiet" icon="stop" actions={retryButton("Try again")}>
        Stopped
      </Problem>
    );
  }
  const mine = isMyAgent(sender, me);
  if (mine && !isReadOnly && !repeated && turn.error?.code === "key_missing")
    return <KeyMissing username={sender.username} onRetry={retry} />;
  const remedy = mine && !repeated && turn.error && remedyFor(turn.error);
  const reason = turn.error?.message.replace(isAllowed || repeated ? TRY_AGAIN : "", "");
  return (
    <Problem
      actions={
        <>
          {mine && !isReadOnly && !repeated && turn.error?.code === "context_too_long" && (
            <ProblemButton onClick={() => startNewChat(client, sender.username).catch(showError)}>
              Start a new one
            </ProblemButton>
          )}
          {remedy && (
            <ProblemButton onClick={() => navigate(agentPath(sender.username, remedy.field))}>
              {remedy.label}
            </ProblemButton>
          )}
          {retryButton("Try again")}
        </>
      }
    >
      {mine ? reason?.replace("Its owner can", "You can").replace("their own", "your own") : reason}
    </Problem>
  );
}

/** The button replaces this sentence of the message. */
const TRY_AGAIN = / Try again[^.]*\.$/;

/** A stream that stopped because the connection is lost. */
const Interrupted = ({ connection }: { connection: "offline" | "unreachable" }) => (
  <Problem tone="quiet" icon="offline">
    {connectionMessages[connection]} The answer is updated when the connection is back.
  </Problem>
);

/** The field of the agent in which its owner can solve the problem. */
function remedyFor({ code, message }: TurnError): { label: string; field: AgentField } | null {
  if (code === "key_rejected") return { label: "Set a key", field: "key" };
  if (code !== "budget_exceeded") return null;
  // The owner cannot raise what the operator provides.
  if (message.includes("this server pays for")) return { label: "Set a key", field: "key" };
  return { label: "Change the limits", field: exceededLimit(message) };
}

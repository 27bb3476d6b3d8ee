import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { lazy, Suspense } from "react";
import { useAction } from "../../lib/action.ts";
import { connectionMessages, useConnection } from "../../lib/connection.ts";
import { describeError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { useChatContext } from "../context.ts";
import { Problem, ProblemButton } from "../Problem.tsx";
import { mayControlTurn } from "./turn-rights.ts";

const FailedTurn = lazy(() => import("./FailedTurn.tsx"));

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
  const { id, turn, finalized_at } = message;
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
  const hasRetry = isAllowed || repeated;
  return (
    <Suspense fallback={<Problem>{turn.error?.message}</Problem>}>
      <FailedTurn
        {...{ message, repeated, hasRetry, retry }}
        retryButton={retryButton("Try again")}
      />
    </Suspense>
  );
}

/** A stream that stopped because the connection is lost. */
const Interrupted = ({ connection }: { connection: "offline" | "unreachable" }) => (
  <Problem tone="quiet" icon="offline">
    {connectionMessages[connection]} The answer is updated when the connection is back.
  </Problem>
);

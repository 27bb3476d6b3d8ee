import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useAction, wordsFor } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { isMyAgent } from "../lib/names.ts";
import { navigate } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { useTools } from "./context.ts";
import { KeyMissing } from "./KeyMissing.tsx";
import { maySteer } from "./steer.ts";

/** How an agent's turn stands, and what can be done about it, in its place. */
export function TurnNote({ message }: { message: LocalMessage }) {
  const { chat } = useTools();
  const me = useSelf();
  const client = useClient();
  const { busy, error, run } = useAction();
  const { id, sender, turn, finalized_at } = message;
  if (!turn || turn.status === "complete") return null;
  const may = maySteer(message, chat, me, client.model);

  if (!finalized_at) {
    if (!may) return null;
    return (
      <Button
        size="small"
        look="quiet"
        icon="stop"
        busy={busy}
        className="-ml-2.5 self-start"
        onClick={() => run(() => client.stopAgentTurn({ message_id: id }))}
      >
        Stop
      </Button>
    );
  }
  const retry = () => client.retryAgentTurn({ message_id: id });
  const again = may && (
    <Button size="small" icon="retry" busy={busy} onClick={() => run(retry)}>
      Try again
    </Button>
  );
  if (turn.status === "stopped") {
    return (
      <p className="flex items-center gap-3 text-sm text-ink-3">
        Stopped {again} {error !== null && wordsFor(error)}
      </p>
    );
  }
  const mine = isMyAgent(sender, me);
  if (mine && turn.error?.code === "key_missing")
    return <KeyMissing username={sender.username} onRetry={retry} />;
  const aboutKey = turn.error?.code === "key_rejected";
  const aboutBudget = turn.error?.code === "budget_exceeded";
  const remedy = mine && (aboutKey || aboutBudget) && (
    <Button
      size="small"
      look="primary"
      icon={aboutKey ? "key" : "settings"}
      onClick={() => navigate("/agents")}
    >
      {aboutKey ? "Set a key" : "Change the limits"}
    </Button>
  );
  return (
    <Notice
      tone="danger"
      actions={
        (remedy || again) && (
          <>
            {remedy}
            {again}
          </>
        )
      }
    >
      {error !== null ? wordsFor(error) : turn.error?.message}
    </Notice>
  );
}

import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { nameOf } from "../lib/names.ts";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Notice } from "../ui/Notice.tsx";

/** Deletes an agent that the person created, after a question. */
export function DeleteAgent({ agent, onDeleted }: { agent: AgentProfile; onDeleted: () => void }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [asking, setAsking] = useState(false);
  const remove = async () => {
    setAsking(false);
    if (await run(() => client.deleteAgent({ agent_username: agent.username }))) onDeleted();
  };
  return (
    <>
      <Button look="danger" icon="trash" busy={busy} onClick={() => setAsking(true)}>
        Delete
      </Button>
      {error !== null && <Notice>{describeError(error)}</Notice>}
      {asking && (
        <Confirm
          title={`Delete ${nameOf({ ...agent, kind: "agent" })}?`}
          back="Keep"
          action="Delete agent"
          onBack={() => setAsking(false)}
          onConfirm={() => void remove()}
        >
          It stops answering and leaves its groups. Your chats with it stay readable, but closed.
          Nobody can use @{agent.username} again.
        </Confirm>
      )}
    </>
  );
}

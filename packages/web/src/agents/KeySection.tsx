import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { type FormEvent, useState } from "react";
import { useAction, wordsFor } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { TextField } from "../ui/Field.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Part } from "./AgentCard.tsx";
import { giveSandboxKey } from "./sandbox.ts";

/** A key is put in and can be replaced or removed; it is never shown again. */
export function KeySection({ agent }: { agent: AgentProfile }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [replacing, setReplacing] = useState(false);
  const [asking, setAsking] = useState(false);
  const { provider, key_configured, key_tail } = agent;
  const change = async (work: () => Promise<unknown>) => {
    const done = await run(async () => {
      await work();
      await client.model.refreshAgents();
    });
    if (done) setReplacing(false);
  };
  const save = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get("api_key") ?? "").trim();
    void change(() => client.setAgentKey({ provider, api_key: key }));
  };
  const remove = () => {
    setAsking(false);
    void change(() => client.removeAgentKey({ provider }));
  };
  return (
    <Part title="API key">
      {key_configured ? (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
          <p className="flex min-w-0 flex-1 items-center gap-2 text-base">
            <span className="text-good">
              <Icon name="check" size={16} />
            </span>
            <code className="truncate font-mono text-sm">{key_tail ?? "••••••••"}</code>
            <span className="sr-only">A key is stored.</span>
          </p>
          <div className="flex gap-2">
            <Button size="small" onClick={() => setReplacing(!replacing)}>
              Replace
            </Button>
            <Button size="small" look="danger" busy={busy} onClick={() => setAsking(true)}>
              Remove
            </Button>
          </div>
          {asking && (
            <Confirm
              title="Remove this key?"
              back="Keep"
              action="Remove key"
              onBack={() => setAsking(false)}
              onConfirm={remove}
            >
              {agent.display_name} stops answering, everywhere, until you store a key again.
            </Confirm>
          )}
        </div>
      ) : (
        <Notice
          tone="warn"
          icon="key"
          actions={
            <Button
              size="small"
              icon="spark"
              busy={busy}
              onClick={() => change(() => giveSandboxKey(client, agent.username))}
            >
              Try the sandbox
            </Button>
          }
        >
          Without a key it cannot answer. The sandbox needs none: it is a stand-in that runs on this
          server.
        </Notice>
      )}
      {(replacing || !key_configured) && (
        <form onSubmit={save} className="flex items-end gap-2">
          <div className="flex-1">
            <TextField
              label={key_configured ? "New API key" : "Your API key"}
              name="api_key"
              type="password"
              autoComplete="off"
              required
              placeholder="Paste the key"
            />
          </div>
          <Button type="submit" look="primary" busy={busy}>
            Save
          </Button>
        </form>
      )}
      {error !== null && (
        <div role="alert">
          <Notice tone="danger">{wordsFor(error)}</Notice>
        </div>
      )}
      <p className="text-sm text-ink-3">
        Keys are sealed on the server, opened only while the agent answers, and never shown again.
      </p>
    </Part>
  );
}

import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { useEffect, useRef, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError } from "../lib/errors.ts";
import { focusField } from "../lib/focus.ts";
import { nameOf } from "../lib/names.ts";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { CardSection } from "./CardSection.tsx";
import { KeyForm } from "./KeyForm.tsx";
import { KeyTestResult, useKeyTest } from "./key-test.tsx";
import { hasKey, isProvided } from "./keys.ts";
import { giveSandboxKey, isSandbox } from "./sandbox.ts";

interface KeySectionProps {
  agent: AgentProfile;
  /** Set to open the key field; a new object for each request. */
  target: object | null;
}

/** Stores, tests, replaces and removes the key. A stored key is never shown. */
export function KeySection({ agent, target }: KeySectionProps) {
  const [replacing, setReplacing] = useState(false);
  const section = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (target !== null) setReplacing(true);
  }, [target]);
  const close = () => setReplacing(false);
  const isOpen = replacing || !hasKey(agent);
  useEffect(() => {
    if (target !== null || replacing) focusField(section.current?.querySelector("input") ?? null);
  }, [target, replacing]);
  return (
    <CardSection title="API key">
      <div ref={section} className="flex flex-col gap-3">
        {agent.key_configured && (
          <StoredKey agent={agent} onReplace={() => setReplacing(!replacing)} />
        )}
        {isProvided(agent) && (
          <ProvidedKey agent={agent} onUseOwn={() => setReplacing(!replacing)} />
        )}
        {!hasKey(agent) && <NoKey agent={agent} />}
        {isOpen && (
          <KeyForm agent={agent} onStored={close} onCancel={hasKey(agent) ? close : null} />
        )}
        <p className="text-sm text-ink-3">
          Keys are sealed on the server, opened only while the agent answers, and never shown again.
        </p>
      </div>
    </CardSection>
  );
}

function StoredKey({ agent, onReplace }: { agent: AgentProfile; onReplace: () => void }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const test = useKeyTest(agent.username);
  const [asking, setAsking] = useState(false);
  const remove = () => {
    setAsking(false);
    void run(async () => {
      await client.removeAgentKey({ agent_username: agent.username });
      await client.model.refreshAgents();
    });
  };
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <p className="flex min-w-0 flex-1 basis-40 items-center gap-2 text-base">
          <span className="text-good">
            <Icon name="check" size={16} />
          </span>
          {isSandbox(agent) ? "Sandbox" : <KeyTail tail={agent.key_tail} />}
        </p>
        <div className="flex flex-wrap gap-2">
          <Button size="small" busy={test.busy} onClick={() => test.start()}>
            Test the key
          </Button>
          <Button size="small" onClick={onReplace}>
            {isSandbox(agent) ? "Use your own key" : "Replace"}
          </Button>
          <Button size="small" look="danger" busy={busy} onClick={() => setAsking(true)}>
            Remove
          </Button>
        </div>
      </div>
      <KeyTestResult {...test} />
      {error !== null && <Notice>{describeError(error)}</Notice>}
      {asking && (
        <Confirm
          title="Remove this key?"
          back="Keep"
          action="Remove key"
          onBack={() => setAsking(false)}
          onConfirm={remove}
        >
          {nameOf({ ...agent, kind: "agent" })} stops answering, everywhere, until you store a key
          again, unless this server provides one.
        </Confirm>
      )}
    </>
  );
}

const KeyTail = ({ tail }: { tail: string | null }) => (
  <>
    <code className="truncate font-mono text-sm">{tail ?? "••••••••"}</code>
    <span className="sr-only">A key is stored.</span>
  </>
);

/** The operator pays for the agent. A key of one's own is possible, and not needed. */
function ProvidedKey({ agent, onUseOwn }: { agent: AgentProfile; onUseOwn: () => void }) {
  const test = useKeyTest(agent.username);
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <p className="flex min-w-0 flex-1 basis-40 items-center gap-2 text-base">
          <span className="text-good">
            <Icon name="check" size={16} />
          </span>
          Provided by this server
        </p>
        <div className="flex flex-wrap gap-2">
          <Button size="small" busy={test.busy} onClick={() => test.start()}>
            Test the key
          </Button>
          <Button size="small" onClick={onUseOwn}>
            Use your own key
          </Button>
        </div>
      </div>
      <KeyTestResult {...test} />
    </>
  );
}

function NoKey({ agent }: { agent: AgentProfile }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-3 gap-y-2">
      <p className="min-w-0 flex-1 basis-56 text-base text-ink-2">
        Without a key it cannot answer. The sandbox needs none: it is a stand-in that runs on this
        server.
      </p>
      <Button
        size="small"
        icon="spark"
        busy={busy}
        onClick={() => run(() => giveSandboxKey(client, agent.username))}
      >
        Try the sandbox
      </Button>
      {error !== null && <Notice>{describeError(error)}</Notice>}
    </div>
  );
}

import { useClient } from "@parley/client/react";
import type { AgentProfile, AgentToken } from "@parley/protocol";
import { useCallback, useEffect, useState } from "react";
import { CardSection } from "../agents/CardSection.tsx";
import { showError } from "../lib/errors.ts";
import { useFetched } from "../lib/fetched.ts";
import { dateOf, fullTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";
import { NewToken } from "./NewToken.tsx";

/** How often to ask whether the program of the agent is connected. */
const CHECK_MS = 5000;

/** Whether the program of an external agent is connected, and the tokens that it may connect with. */
export function TokensSection({ agent }: { agent: AgentProfile }) {
  const client = useClient();
  const [isCreating, setCreating] = useState(false);
  const { username } = agent;
  const fetched = useFetched(useCallback(() => client.getAgentTokens(), [client]));
  const { value, fetchAgain } = fetched;
  const tokens = value?.items.filter((token) => token.agent_username === username) ?? [];
  useEffect(() => {
    // Nothing announces it. A check that fails is followed by the next one.
    const check = () => void client.model.refreshAgents().catch(() => {});
    const timer = setInterval(check, CHECK_MS);
    return () => clearInterval(timer);
  }, [client]);
  return (
    <CardSection
      title="Program"
      action={
        <Button size="small" icon="key" onClick={() => setCreating(true)}>
          New token
        </Button>
      }
    >
      <Connection isOnline={agent.online === true} />
      {value === null && <Unfetched fetched={fetched} className="h-10" />}
      {tokens.length > 0 && (
        <ul aria-label="Tokens" className="divide-y divide-line">
          {tokens.map((token) => (
            <TokenRow key={token.id} token={token} onRevoked={fetchAgain} />
          ))}
        </ul>
      )}
      {isCreating && (
        <NewToken username={username} onCreated={fetchAgain} onClose={() => setCreating(false)} />
      )}
    </CardSection>
  );
}

function Connection({ isOnline }: { isOnline: boolean }) {
  return (
    <p role="status" className="flex items-center gap-2 text-base text-ink-2">
      <span
        aria-hidden="true"
        className={`size-2 shrink-0 rounded-full ${isOnline ? "bg-good" : "border border-edge"}`}
      />
      {isOnline
        ? "Connected. It answers."
        : "Not connected. Start your program with a token, and it answers."}
    </p>
  );
}

function TokenRow({ token, onRevoked }: { token: AgentToken; onRevoked: () => void }) {
  const client = useClient();
  const [isAsking, setAsking] = useState(false);
  const { id, name, created_at, last_used_at } = token;
  const revoke = () => {
    setAsking(false);
    client.revokeAgentToken({ token_id: id }).then(onRevoked, showError);
  };
  return (
    <li className="flex items-center gap-3 py-2.5 first:pt-0 last:pb-0">
      <span className="min-w-0 flex-1">
        <span className="block text-base font-medium break-words">{name || "Token"}</span>
        <span className="block text-sm text-ink-3">
          Created {dateOf(created_at)} ·{" "}
          {last_used_at ? `last used ${fullTime(last_used_at)}` : "never used"}
        </span>
      </span>
      <Button
        size="small"
        look="danger"
        aria-label={`Revoke ${name || "the token"}`}
        onClick={() => setAsking(true)}
      >
        Revoke
      </Button>
      {isAsking && (
        <Confirm
          title="Revoke this token?"
          back="Keep"
          action="Revoke token"
          onBack={() => setAsking(false)}
          onConfirm={revoke}
        >
          Programs that use it are disconnected at once, and cannot connect again.
        </Confirm>
      )}
    </li>
  );
}

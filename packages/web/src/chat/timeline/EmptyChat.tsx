import type { LocalChat } from "@parley/client";
import { useAgents, useClient, useMessages } from "@parley/client/react";
import { useEffect } from "react";
import { hasKey, useLacksKey } from "../../agents/keys.ts";
import { trySandbox } from "../../agents/sandbox.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { chatTitle, isMyAgent, others } from "../../lib/names.ts";
import { agentPath, navigate } from "../../lib/router.ts";
import { ChatAvatar } from "../../shell/ChatItem.tsx";
import { Button } from "../../ui/Button.tsx";
import { useChatContext } from "../context.ts";
import { Changes } from "./Changes.tsx";

/** A conversation without messages: for one's own agent with suggestions to send. */
export function EmptyChat() {
  const { chat } = useChatContext();
  const me = useSelf();
  const { changes } = useMessages(chat.id);
  const [other] = others(chat, me);
  const lacksKey = useLacksKey(chat.kind === "direct" ? (other?.username ?? "") : "");
  if (!other) return null;
  const mine = chat.kind === "direct" && isMyAgent(other, me);
  return (
    <div className="flex h-full flex-col items-center justify-center gap-5 px-6 text-center">
      <span className="flex [--ground:var(--color-canvas)]">
        <ChatAvatar chat={chat} size={64} />
      </span>
      <div>
        <h2 className="text-xl font-semibold tracking-tight">{chatTitle(chat, me)}</h2>
        {!lacksKey && (
          <p className="mt-1 text-md text-balance text-ink-2">{introduction(chat, mine)}</p>
        )}
      </div>
      {mine && <Suggestions username={other.username} />}
      {changes.length > 0 && <Changes changes={changes} />}
    </div>
  );
}

function introduction(chat: LocalChat, mine: boolean): string {
  if (mine) return "Say anything. Here is something to begin with:";
  const hasAgents = chat.participants.some(({ kind }) => kind === "agent");
  return hasAgents && chat.kind === "group"
    ? "This is where it begins. Agents answer when you mention them with @."
    : "This is where it begins. Say hello!";
}

const suggestions: [label: string, text: string][] = [
  ["Say hello", "Hello! Who are you?"],
  ["Show me a card", "Show me how to buy something"],
  ["Show me a form", "Show me a form"],
  ["Write something long", "Write something long"],
];

function Suggestions({ username }: { username: string }) {
  const { chat } = useChatContext();
  const client = useClient();
  const agent = useAgents().find((each) => each.username === username);
  useEffect(() => {
    // If it fails, the page shows the agents that are known already.
    void client.model.refreshAgents().catch(() => {});
  }, [client]);
  if (agent && !hasKey(agent)) {
    return (
      <div className="flex flex-col items-center gap-3">
        <p className="max-w-sm text-base text-ink-2">
          It has no key yet. Try it in the sandbox, which answers at once and costs nothing, or give
          it a key of your own.
        </p>
        <div className="flex flex-wrap justify-center gap-2">
          <Button
            look="primary"
            icon="spark"
            onClick={() => trySandbox(client, agent).catch(showError)}
          >
            Try the sandbox
          </Button>
          <Button icon="key" onClick={() => navigate(agentPath(username, "key"))}>
            Add a key
          </Button>
        </div>
      </div>
    );
  }
  return (
    <div className="flex max-w-xl flex-wrap justify-center gap-2">
      {suggestions.map(([label, text]) => (
        <Button key={label} size="small" onClick={() => client.model.send(chat.id, text)}>
          {label}
        </Button>
      ))}
    </div>
  );
}

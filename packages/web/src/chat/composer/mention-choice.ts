import { useAgents, useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useMemo, useState } from "react";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { useChatContext } from "../context.ts";
import type { ComposerText } from "./composer-text.ts";
import { candidates, complete, mentionAt } from "./mention.ts";

interface MentionChoice {
  offered: Account[];
  /** One's own agents that are not in the group. */
  absent: readonly Account[];
  /** Index of the highlighted account. */
  active: number;
  take: (index: number) => void;
  /** Moves in the list, takes from it or closes it. False if the key has no meaning for the list. */
  handleKey: (key: string) => boolean;
  /** The absent agent that was taken, while the person is asked whether to add it. */
  asked: Account | null;
  /** Mentions the agent that was asked about, and adds it to the group. */
  add: () => void;
  cancelAdd: () => void;
}

/** The accounts that the handle at the caret may mean, and the choice among them. */
export function useMentionChoice({ text, caret, replace }: ComposerText): MentionChoice {
  const { chat } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const absent = useAbsentAgents();
  const [asked, setAsked] = useState<Account | null>(null);
  // A choice is valid for the text it was made in.
  const [choice, setChoice] = useState({ text: "", index: 0 });
  /** Start of the handle whose list was closed with Escape. */
  const [dismissed, setDismissed] = useState(-1);

  const mention = mentionAt(text, caret);
  const offered =
    mention && mention.start !== dismissed && !asked
      ? candidates([...chat.participants, ...absent], me.username, mention.query)
      : [];
  const active = Math.min(choice.text === text ? choice.index : 0, offered.length - 1);

  const mentionAccount = ({ username }: Account) => {
    if (!mention) return;
    const next = complete(text, caret, mention, username);
    replace(next.text, next.caret);
  };
  const take = (index: number) => {
    const account = offered[index];
    if (!account) return;
    if (absent.includes(account)) setAsked(account);
    else mentionAccount(account);
  };
  const dismiss = () => setDismissed(mention?.start ?? -1);
  const add = () => {
    if (!asked) return;
    setAsked(null);
    mentionAccount(asked);
    client.addGroupAgent({ chat_id: chat.id, agent_username: asked.username }).catch(showError);
  };
  const cancelAdd = () => {
    setAsked(null);
    dismiss();
  };
  const move = (by: number) =>
    setChoice({ text, index: (active + by + offered.length) % offered.length });
  const handleKey = (key: string) => {
    if (offered.length === 0) return false;
    if (key === "ArrowDown") move(1);
    else if (key === "ArrowUp") move(-1);
    else if (key === "Enter" || key === "Tab") take(active);
    else if (key === "Escape") dismiss();
    else return false;
    return true;
  };
  return { offered, absent, active, take, handleKey, asked, add, cancelAdd };
}

/** One's own agents that are not in the open group. */
function useAbsentAgents(): readonly Account[] {
  const { chat } = useChatContext();
  const agents = useAgents();
  return useMemo(() => {
    if (chat.kind !== "group") return [];
    const present = new Set(chat.participants.map(({ username }) => username));
    return agents
      .filter(({ username }) => !present.has(username))
      .map((agent): Account => ({ ...agent, kind: "agent" }));
  }, [agents, chat]);
}

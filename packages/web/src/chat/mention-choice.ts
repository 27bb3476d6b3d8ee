import type { Account } from "@parley/protocol";
import { useState } from "react";
import { useSelf } from "../lib/me.ts";
import type { ComposerText } from "./composer-text.ts";
import { useChatContext } from "./context.ts";
import { candidates, complete, mentionAt } from "./mention.ts";

interface MentionChoice {
  offered: Account[];
  /** Index of the highlighted account. */
  active: number;
  take: (index: number) => void;
  /** Moves in the list, takes from it or closes it. False if the key has no meaning for the list. */
  handleKey: (key: string) => boolean;
}

/** The accounts that the handle at the caret may mean, and the choice among them. */
export function useMentionChoice({ text, caret, replace }: ComposerText): MentionChoice {
  const { chat } = useChatContext();
  const me = useSelf();
  // A choice is valid for the text it was made in.
  const [choice, setChoice] = useState({ text: "", index: 0 });
  /** Start of the handle whose list was closed with Escape. */
  const [dismissed, setDismissed] = useState(-1);

  const mention = mentionAt(text, caret);
  const offered =
    mention && mention.start !== dismissed
      ? candidates(chat.participants, me.username, mention.query)
      : [];
  const active = Math.min(choice.text === text ? choice.index : 0, offered.length - 1);

  const take = (index: number) => {
    const account = offered[index];
    if (!account || !mention) return;
    const next = complete(text, caret, mention, account.username);
    replace(next.text, next.caret);
  };
  const move = (by: number) =>
    setChoice({ text, index: (active + by + offered.length) % offered.length });
  const handleKey = (key: string) => {
    if (offered.length === 0) return false;
    if (key === "ArrowDown") move(1);
    else if (key === "ArrowUp") move(-1);
    else if (key === "Enter" || key === "Tab") take(active);
    else if (key === "Escape") setDismissed(mention?.start ?? -1);
    else return false;
    return true;
  };
  return { offered, active, take, handleKey };
}

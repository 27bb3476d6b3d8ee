import type { LocalMessage } from "@parley/client";
import type { Account } from "@parley/protocol";
import { useMemo } from "react";
import { useSelf } from "../lib/me.ts";
import { ActionTarget } from "../markdown/action-target.ts";
import { Content } from "../markdown/Content.tsx";
import { MentionContext } from "../markdown/Inline.tsx";
import { PlainTextFallback } from "./PlainTextFallback.tsx";
import { useSenderName } from "./sender-names.ts";

/** What the message says; what came of an agent's turn stands below it. */
export function MessageBody({ message }: { message: LocalMessage }) {
  const me = useSelf();
  const speaker = useSenderName();
  const { id, conversation_id, content, mentions, turn, finalized_at, sender, uses } = message;
  const streaming = finalized_at === null && turn !== null;
  const acts = sender.kind === "agent" && !streaming;
  const target = useMemo(
    () =>
      acts
        ? {
            chatId: conversation_id,
            messageId: id,
            uses,
            who: (account: Account) =>
              account.username === me.username ? "You" : speaker(account),
            isMe: (account: Account) => account.username === me.username,
          }
        : null,
    [acts, conversation_id, id, uses, me.username, speaker],
  );
  const named = useMemo(() => ({ names: mentions, me: me.username }), [mentions, me.username]);
  // A turn that failed before it said anything has our own sentence as its content.
  if (turn?.error && turn.error.message === content) return null;
  return (
    <ActionTarget value={target}>
      <MentionContext value={named}>
        <PlainTextFallback text={content}>
          <Content text={content} streaming={streaming} />
        </PlainTextFallback>
      </MentionContext>
    </ActionTarget>
  );
}

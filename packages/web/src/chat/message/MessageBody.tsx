import type { LocalMessage } from "@parley/client";
import type { Account } from "@parley/protocol";
import { useMemo } from "react";
import { ActionTarget, AskedCalls } from "../../components/action-target.ts";
import { Content } from "../../components/Content.tsx";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent, ownerOf } from "../../lib/names.ts";
import { MentionContext } from "../../markdown/Inline.tsx";
import { callsAsked, callsMade, isCalling } from "../../tools/calls.ts";
import { MessageCalls } from "../../tools/MessageCalls.tsx";
import { useChatContext } from "../context.ts";
import { useSenderName } from "../sender-names.ts";
import { PlainTextFallback } from "./PlainTextFallback.tsx";

/** The content of a message, with its tool calls. The state of an agent's turn is in `TurnNote`. */
export function MessageBody({ message }: { message: LocalMessage }) {
  const { isReadOnly } = useChatContext();
  const me = useSelf();
  const speaker = useSenderName();
  const { id, conversation_id, content, mentions, turn, finalized_at, sender, uses, tool_calls } =
    message;
  const streaming = finalized_at === null && turn !== null;
  const isInteractive = sender.kind === "agent" && !streaming;
  const target = useMemo(
    () =>
      isInteractive
        ? {
            chatId: conversation_id,
            messageId: id,
            isReadOnly,
            uses,
            who: (account: Account) =>
              account.username === me.username ? "You" : speaker(account),
            isMe: (account: Account) => account.username === me.username,
            isOwner: isMyAgent(sender, me),
            owner: `@${ownerOf(sender.username)}`,
            agent: speaker(sender),
          }
        : null,
    [isInteractive, conversation_id, id, isReadOnly, uses, me, sender, speaker],
  );
  const mentioned = useMemo(() => ({ names: mentions, me: me.username }), [mentions, me.username]);
  const callIds = useMemo(() => tool_calls.map((call) => call.id), [tool_calls]);
  // A turn that failed before its first word has the error message as its content; `TurnNote` shows it.
  const isError = turn?.error && turn.error.message === content;
  return (
    <ActionTarget value={target}>
      <MentionContext value={mentioned}>
        <AskedCalls value={callIds}>
          <MessageCalls message={message} calls={callsMade(tool_calls)} />
          {!isError && !(content === "" && isCalling(tool_calls)) && (
            <PlainTextFallback text={content}>
              <Content text={content} streaming={streaming} />
            </PlainTextFallback>
          )}
          <MessageCalls message={message} calls={callsAsked(tool_calls)} />
        </AskedCalls>
      </MentionContext>
    </ActionTarget>
  );
}

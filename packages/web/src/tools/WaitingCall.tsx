import { useChat, useClient } from "@parley/client/react";
import type { Message, PendingToolCall } from "@parley/protocol";
import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import { messageLine } from "../files/describe.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, shortName } from "../lib/names.ts";
import { chatPath, navigate } from "../lib/router.ts";
import { fullTime, shortTime } from "../lib/time.ts";
import { toast } from "../lib/toasts.ts";
import { Link } from "../ui/Link.tsx";
import { Approval } from "./Approval.tsx";
import { callTitle } from "./calls.ts";
import { useDecision } from "./decision.ts";
import { usePending } from "./pending.ts";

/** A call of the list of what waits, with the question that it comes from and a link to its message. */
export function WaitingCall({ item }: { item: PendingToolCall }) {
  const { call, message_id, conversation_id, agent } = item;
  const { refresh } = usePending();
  const decision = useDecision(call.id, message_id, (decided, isLate) => {
    toast(outcome(callTitle(decided), decided.status, isLate));
    refresh();
  });
  const card = useRef<HTMLDivElement>(null);
  const open = (event: KeyboardEvent) => {
    const isOpening = event.key === "o" || (event.key === "Enter" && event.target === card.current);
    if (!isOpening || event.target instanceof HTMLTextAreaElement) return;
    event.preventDefault();
    navigate(chatPath(conversation_id, message_id));
  };
  return (
    <li onKeyDown={open} className="*:max-w-none">
      <Approval
        ref={card}
        agent={agent}
        owner="you"
        call={call}
        detail={call}
        decision={decision}
        context={<Origin item={item} />}
      />
    </li>
  );
}

function outcome(title: string, status: string, isLate: boolean): string {
  if (status === "expired") return `${title}: it has expired.`;
  const decision = status === "rejected" ? "rejected" : "approved";
  return isLate ? `${title} was already ${decision}.` : `${title}: ${decision}.`;
}

/** The conversation, and who asked the agent for what. */
function Origin({ item }: { item: PendingToolCall }) {
  const { call, message_id, conversation_id } = item;
  const me = useSelf();
  const chat = useChat(conversation_id);
  const question = useQuestion(message_id);
  const asker = ({ sender }: Message) =>
    sender.username === me.username ? "You" : shortName(sender);
  return (
    <div className="flex flex-wrap items-baseline gap-x-2 border-b border-line pb-2.5 text-sm text-ink-3">
      <Link
        to={chatPath(conversation_id, message_id)}
        className="min-w-0 rounded-sm font-medium break-words text-accent hover:underline pointer-coarse:py-2"
      >
        {chat ? chatTitle(chat, me) : "Open the conversation"}
      </Link>
      <time dateTime={call.created_at} title={fullTime(call.created_at)} className="text-xs">
        {shortTime(call.created_at)}
      </time>
      {/* It has its place before it arrives: the buttons must not move under a finger. */}
      <span className="line-clamp-1 min-h-[1lh] basis-full break-words max-md:line-clamp-2 max-md:min-h-[2lh]">
        {question && `${asker(question)}: «${messageLine(question, 200)}»`}
      </span>
    </div>
  );
}

/** The message that the agent answers; null until it is fetched, and if it cannot be. */
function useQuestion(messageId: string): Message | null {
  const client = useClient();
  const [question, setQuestion] = useState<Message | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const load = async () => {
      const { turn, reply_to_id } = await client.getMessage({ message_id: messageId });
      const id = turn?.triggered_by ?? reply_to_id;
      const found = id ? await client.getMessage({ message_id: id }) : null;
      if (isCurrent) setQuestion(found);
    };
    // The question may be deleted: the call can be decided without it.
    load().catch(() => {});
    return () => {
      isCurrent = false;
    };
  }, [client, messageId]);
  return question;
}

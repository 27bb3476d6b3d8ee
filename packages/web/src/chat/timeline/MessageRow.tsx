import type { LocalMessage } from "@parley/client";
import { memo, useEffect, useRef, useState } from "react";
import { MessageFiles } from "../../files/MessageFiles.tsx";
import { BLOCKED_MESSAGE, useIsBlocked } from "../../lib/blocked.ts";
import { useSelf } from "../../lib/me.ts";
import { nameOf } from "../../lib/names.ts";
import { clockTime, dayLabel, fullTime } from "../../lib/time.ts";
import { useToday } from "../../lib/today.ts";
import { useTouch } from "../../lib/touch.ts";
import { isCalling, isPending } from "../../tools/calls.ts";
import { TurnStatus } from "../../tools/TurnStatus.tsx";
import { Avatar } from "../../ui/Avatar.tsx";
import { Icon } from "../../ui/Icon.tsx";
import { OwnerChip } from "../../ui/OwnerChip.tsx";
import { useChatContext } from "../context.ts";
import { ActionNote } from "../message/ActionNote.tsx";
import { Delivery } from "../message/Delivery.tsx";
import { Edited } from "../message/Edited.tsx";
import { MessageActions } from "../message/MessageActions.tsx";
import { MessageBody } from "../message/MessageBody.tsx";
import { Reactions } from "../message/Reactions.tsx";
import { ReplyQuote } from "../message/ReplyQuote.tsx";
import { TurnNote } from "../message/TurnNote.tsx";
import { useNeedsHandle, useSenderName } from "../sender-names.ts";
import { Changes } from "./Changes.tsx";
import { FoldLine } from "./FoldLine.tsx";
import type { Row } from "./rows.ts";

interface MessageRowProps extends Omit<Row, "key"> {
  /** Tab reaches only one message of the list. */
  tabbable: boolean;
  /** Highlights the message for a moment, and focuses it. */
  flash: boolean;
  /** It is the latest message of the conversation. */
  latest: boolean;
  isLastOwn: boolean;
  /** The message answers a question that was edited since. */
  outdated: boolean;
  /** Which of several answers to its question it is («1 of 2»), if it is not the latest one. */
  earlier: string | undefined;
  /** The first message of somebody whom one has not answered: the username is shown. */
  ofStranger: boolean;
}

export const MessageRow = memo(function MessageRow(props: MessageRowProps) {
  const {
    message,
    day,
    changes,
    changesAfter,
    isFirstUnread,
    first,
    last,
    tabbable,
    flash,
    latest,
    isLastOwn,
    outdated,
    earlier,
    ofStranger,
  } = props;
  const { isReadOnly, onReply, onActions } = useChatContext();
  const me = useSelf();
  const speaker = useSenderName();
  const fold = useFold(message, earlier, flash);
  const isFolded = fold?.isFolded ?? false;
  const hasActions = message.delivery === "sent" && !isFolded;
  const touch = useTouch({
    onLongPress: () => hasActions && onActions(message),
    ...(!isReadOnly && { onSwipe: () => hasActions && onReply(message) }),
  });
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    if (flash) article.current?.focus({ preventScroll: true });
  }, [flash]);
  const mine = message.sender.username === me.username;
  const agent = message.sender.kind === "agent";
  const pinned = latest && agent && message.finalized_at !== null;
  const actions = <MessageActions {...{ message, mine, first, last, pinned }} />;
  return (
    <div className="mx-auto max-w-208 px-3 md:px-4">
      {day !== null && <DaySeparator day={day} />}
      {changes.length > 0 && <Changes changes={changes} />}
      {isFirstUnread && <UnreadLine />}
      <article
        {...touch}
        ref={article}
        tabIndex={tabbable ? 0 : -1}
        aria-label={`${isFolded && fold?.text === BLOCKED_MESSAGE ? BLOCKED_MESSAGE : speaker(message.sender)}, ${clockTime(message.created_at)}`}
        className={`group relative flex touch-pan-y gap-3 rounded-md pointer-coarse:select-none focus-visible:outline-offset-0 ${isFolded && earlier ? "pt-2" : space(first, agent, message)} ${mine ? "flex-row-reverse" : ""} ${pinned && changesAfter.length > 0 ? "pb-4" : ""} ${flash ? "animate-flash motion-reduce:bg-sunken" : ""}`}
      >
        {!mine && (
          <div className="w-8 shrink-0 max-sm:w-7">
            {isFolded ? null : first ? (
              <Avatar account={message.sender} size={32} />
            ) : (
              <SideTime at={message.created_at} />
            )}
          </div>
        )}
        <div
          className={`flex min-w-0 flex-col gap-1 ${mine ? "max-w-[85%] items-end" : agent ? "relative flex-1" : "max-w-[85%] items-start"}`}
        >
          {fold && <FoldLine {...fold} />}
          {!isFolded && (
            <>
              {first && !mine && <Byline message={message} withHandle={ofStranger} />}
              <div
                className={`max-w-full min-w-0 ${mine ? "relative" : agent ? "w-full" : "@3xl:relative"}`}
              >
                {(message.files.length === 0 || message.content !== "" || message.reply_to_id) && (
                  <div
                    className={`${isEmojiAlone(message) ? "text-2xl" : bubble(mine, agent)} ${message.files.length > 0 ? "w-fit max-w-full" : ""} ${mine ? "ml-auto" : ""}`}
                  >
                    {message.action ? (
                      <ActionNote action={message.action} messageId={message.reply_to_id} />
                    ) : (
                      message.reply_to_id && <ReplyQuote id={message.reply_to_id} />
                    )}
                    <MessageBody message={message} />
                  </div>
                )}
                {message.files.length > 0 && <MessageFiles message={message} mine={mine} />}
                {!agent && actions}
              </div>
              {!mine && !first && message.edited_at && <Edited at={message.edited_at} />}
              {message.finalized_at === null &&
                message.turn_status &&
                !isCalling(message.tool_calls) && <TurnStatus text={message.turn_status} />}
              <TurnNote message={message} outdated={outdated} repeated={earlier !== undefined} />
              <Reactions message={message} />
              {mine && <Delivery message={message} last={last} isLastOwn={isLastOwn} />}
              {agent && actions}
            </>
          )}
        </div>
        {hasActions && <TouchParts onActions={() => onActions(message)} />}
      </article>
      {changesAfter.length > 0 && <Changes changes={changesAfter} />}
    </div>
  );
});

/**
 * The line of a message that folds, and whether it does; null for others. In groups, the messages of
 * people whom the person blocked are folded, and everywhere answers that a later one has replaced.
 */
function useFold(message: LocalMessage, earlier: string | undefined, isTarget: boolean) {
  const { chat } = useChatContext();
  const isBlocked = useIsBlocked();
  const [isShown, setShown] = useState(false);
  const { sender, turn, tool_calls } = message;
  // Who jumps to a message wants to read it.
  if (isTarget && earlier && !isShown) setShown(true);
  const line = { isFolded: !isShown, onToggle: () => setShown(!isShown) };
  if (chat.kind === "group" && isBlocked(sender)) return { ...line, text: BLOCKED_MESSAGE };
  const isOver = message.finalized_at !== null && !tool_calls.some(isPending);
  if (!earlier || !turn || !isOver) return null;
  return { ...line, text: `${answerNames[turn.status]}, ${earlier}` };
}

const answerNames = {
  streaming: "Answer",
  complete: "Earlier answer",
  stopped: "Stopped answer",
  failed: "Failed answer",
};

/** More space between turns than within one. Every answer of an agent is a turn, unless it continues one. */
const space = (first: boolean, agent: boolean, { turn }: LocalMessage) =>
  first || (agent && !turn?.continues) ? "pt-5 md:pt-6" : "pt-1";

const FEW_EMOJI = /^\p{RGI_Emoji}{1,3}$/v;

/** A few emoji alone are large and have no bubble. */
const isEmojiAlone = ({ content, reply_to_id, files }: LocalMessage) =>
  reply_to_id === null && files.length === 0 && FEW_EMOJI.test(content);

/** One's own messages are tinted bubbles, people's are bubbles, agents' have none. */
function bubble(mine: boolean, agent: boolean): string {
  if (mine)
    return "rounded-xl rounded-br-sm border border-transparent bg-accent-soft px-3.5 py-2 text-md";
  if (agent) return "py-0.5 text-md";
  return "rounded-xl rounded-tl-sm border border-line bg-surface px-3.5 py-2 text-md";
}

function Byline({ message, withHandle }: { message: LocalMessage; withHandle: boolean }) {
  const needsHandle = useNeedsHandle();
  const { sender, created_at, edited_at } = message;
  return (
    <p className="flex max-w-full flex-wrap items-baseline gap-x-2 text-sm">
      <span className="min-w-0 font-semibold break-words">{nameOf(sender)}</span>
      <OwnerChip account={sender} />
      {(withHandle || needsHandle(sender)) && (
        <span className="min-w-0 text-xs break-all text-ink-3">@{sender.username}</span>
      )}
      <time
        dateTime={created_at}
        title={fullTime(created_at)}
        className="shrink-0 text-xs text-ink-3"
      >
        {clockTime(created_at)}
        {edited_at && " · edited"}
      </time>
    </p>
  );
}

/** The time of a later message of a run, visible on hover. */
function SideTime({ at }: { at: string }) {
  return (
    <time
      dateTime={at}
      title={fullTime(at)}
      className="invisible -ml-4 block w-12 text-right text-2xs leading-10 whitespace-nowrap text-ink-3 group-hover:visible max-sm:hidden"
    >
      {clockTime(at)}
    </time>
  );
}

/** For touch screens: the icon during a swipe, and a button for screen readers in place of a long press. */
function TouchParts({ onActions }: { onActions: () => void }) {
  return (
    <>
      <span
        aria-hidden="true"
        className="absolute top-1/2 left-full -mt-4 ml-3 hidden size-8 items-center justify-center rounded-full bg-sunken text-ink-3 transition-colors group-data-pulling:inline-flex group-data-pulled:bg-accent-fill group-data-pulled:text-on-accent"
      >
        <Icon name="reply" size={16} />
      </span>
      <button
        type="button"
        onClick={onActions}
        className="sr-only not-pointer-coarse:hidden focus-visible:not-sr-only focus-visible:absolute focus-visible:top-0 focus-visible:right-0 focus-visible:rounded-md focus-visible:bg-raised focus-visible:px-3 focus-visible:py-2 focus-visible:shadow-pop"
      >
        Message actions
      </button>
    </>
  );
}

function DaySeparator({ day }: { day: number }) {
  const today = useToday();
  return (
    <div className="flex justify-center pt-6">
      <span className="rounded-full bg-sunken px-3 py-0.5 text-xs font-medium text-ink-2">
        {dayLabel(day, new Date(today))}
      </span>
    </div>
  );
}

function UnreadLine() {
  return (
    <div className="flex items-center gap-3 pt-6 text-xs font-semibold text-accent">
      <span className="h-px flex-1 bg-accent opacity-40" />
      New messages
      <span className="h-px flex-1 bg-accent opacity-40" />
    </div>
  );
}

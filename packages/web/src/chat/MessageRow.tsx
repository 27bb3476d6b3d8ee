import { memo } from "react";
import { useSelf } from "../lib/me.ts";
import { isMyAgent, ownerOf } from "../lib/names.ts";
import { clockTime, fullTime } from "../lib/time.ts";
import { Avatar } from "../ui/Avatar.tsx";
import { Delivery } from "./Delivery.tsx";
import { MessageActions } from "./MessageActions.tsx";
import { MessageBody } from "./MessageBody.tsx";
import { Reactions } from "./Reactions.tsx";
import { ReplyQuote } from "./ReplyQuote.tsx";
import type { Row } from "./rows.ts";
import { TurnNote } from "./TurnNote.tsx";

interface MessageRowProps extends Omit<Row, "key"> {
  /** The one of the list that Tab reaches. */
  tabbable: boolean;
  flash: boolean;
  isLastOwn: boolean;
  /** It answers a question that was edited since. */
  outdated: boolean;
}

export const MessageRow = memo(function MessageRow(props: MessageRowProps) {
  const { message, day, fresh, first, last, tabbable, flash } = props;
  const me = useSelf();
  const mine = message.sender.username === me.username;
  const agent = message.sender.kind === "agent";
  return (
    <div className="mx-auto max-w-208 px-3 md:px-4">
      {day && <DaySeparator label={day} />}
      {fresh && <FreshLine />}
      <article
        tabIndex={tabbable ? 0 : -1}
        aria-label={`${message.sender.display_name}, ${clockTime(message.created_at)}`}
        className={`group relative flex gap-3 rounded-md focus-visible:outline-offset-2 ${first ? "pt-3" : "pt-1"} ${mine ? "flex-row-reverse" : ""} ${flash ? "animate-flash motion-reduce:bg-accent-soft" : ""}`}
      >
        {!mine && (
          <div className="w-8 shrink-0 max-sm:w-7">
            {first ? (
              <Avatar account={message.sender} size={32} />
            ) : (
              <SideTime at={message.created_at} />
            )}
          </div>
        )}
        <div
          className={`flex min-w-0 flex-col gap-1 ${mine ? "max-w-[85%] items-end" : agent ? "flex-1" : "max-w-[85%] items-start"}`}
        >
          {first && !mine && <Byline {...props} />}
          <div className={`relative max-w-full min-w-0 ${agent ? "w-full" : ""}`}>
            <div className={isEmojiAlone(message) ? "text-2xl" : bubble(mine, agent)}>
              {message.reply_to_id && <ReplyQuote id={message.reply_to_id} />}
              <MessageBody message={message} />
            </div>
            <MessageActions message={message} mine={mine} />
          </div>
          <TurnNote message={message} outdated={props.outdated} />
          <Reactions message={message} />
          {mine && <Delivery message={message} last={last} isLastOwn={props.isLastOwn} />}
        </div>
      </article>
    </div>
  );
});

const FEW_EMOJI = /^\p{RGI_Emoji}{1,3}$/v;

/** A few emoji and nothing else need no bubble: they are seen rather than read. */
const isEmojiAlone = ({ content, reply_to_id }: Row["message"]) =>
  reply_to_id === null && FEW_EMOJI.test(content);

/** One's own are tinted and to the right, people's are bubbles, agents' are plain text on the page. */
function bubble(mine: boolean, agent: boolean): string {
  if (mine)
    return "rounded-xl rounded-br-sm border border-transparent bg-accent-soft px-3.5 py-2 text-md";
  if (agent) return "py-0.5 text-md";
  return "rounded-xl rounded-tl-sm border border-line bg-surface px-3.5 py-2 text-md";
}

function Byline({ message }: Pick<Row, "message">) {
  const me = useSelf();
  const { sender, created_at, edited_at } = message;
  return (
    <p className="flex max-w-full items-baseline gap-2 text-sm">
      <span className="truncate font-semibold">{sender.display_name}</span>
      {sender.kind === "agent" && (
        <span className="truncate rounded-xs bg-sunken px-1.5 text-2xs font-medium text-ink-2">
          {isMyAgent(sender, me) ? "your agent" : `@${ownerOf(sender.username)}’s agent`}
        </span>
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

/** When one of a run was sent, for whoever points at it. */
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

function DaySeparator({ label }: { label: string }) {
  return (
    <div className="flex justify-center pt-5 pb-1">
      <span className="rounded-full bg-sunken px-3 py-0.5 text-xs font-medium text-ink-2">
        {label}
      </span>
    </div>
  );
}

function FreshLine() {
  return (
    <div className="flex items-center gap-3 pt-4 text-xs font-semibold text-accent">
      <span className="h-px flex-1 bg-accent opacity-40" />
      New messages
      <span className="h-px flex-1 bg-accent opacity-40" />
    </div>
  );
}

import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useEffect, useId, useState } from "react";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { useTouch } from "../../lib/touch.ts";
import { useChatContext } from "../context.ts";
import { useSenderName } from "../sender-names.ts";

export function Reactions({ message }: { message: LocalMessage }) {
  if (message.reactions.length === 0) return null;
  return (
    <div className="flex flex-wrap gap-1 pt-0.5">
      {message.reactions.map((reaction) => (
        <ReactionButton key={reaction.emoji} message={message} {...reaction} />
      ))}
    </div>
  );
}

interface ReactionButtonProps {
  message: LocalMessage;
  emoji: string;
  count: number;
  reacted: boolean;
}

/** Toggles a reaction; in a conversation without writing it only takes one's own back. A tooltip on hover and focus names who reacted. */
function ReactionButton({ message, emoji, count, reacted }: ReactionButtonProps) {
  const client = useClient();
  const { isReadOnly, onReactors } = useChatContext();
  const isFixed = isReadOnly && !reacted;
  const id = useId();
  const [isPointedAt, setPointedAt] = useState(false);
  const who = useReactorNames(message, emoji, isPointedAt);
  const touch = useTouch({ onLongPress: () => onReactors(message.id), isControl: true });
  return (
    <span className="relative inline-flex">
      <button
        {...touch}
        type="button"
        aria-pressed={reacted}
        aria-disabled={isFixed}
        aria-label={`${emoji}, ${count}`}
        aria-describedby={who === null ? undefined : id}
        onPointerEnter={({ pointerType }) => pointerType === "mouse" && setPointedAt(true)}
        onPointerLeave={() => setPointedAt(false)}
        onFocus={({ currentTarget }) => setPointedAt(currentTarget.matches(":focus-visible"))}
        onBlur={() => setPointedAt(false)}
        onKeyDown={({ key }) => key === "Escape" && setPointedAt(false)}
        onClick={() => !isFixed && client.model.react(message.id, emoji).catch(showError)}
        className={`inline-flex h-7 animate-in items-center gap-1.5 rounded-full border px-2 text-sm tabular-nums transition-colors pointer-coarse:h-9 pointer-coarse:px-3 ${reacted ? "border-accent bg-surface text-accent" : "border-line bg-surface text-ink-2 not-aria-disabled:hover:bg-hover"}`}
      >
        <span aria-hidden="true" className="font-emoji">
          {emoji}
        </span>
        <span className="font-medium">{count}</span>
      </button>
      {who !== null && (
        <span
          id={id}
          role="tooltip"
          className="pointer-events-none absolute bottom-full left-0 z-20 mb-1.5 w-max max-w-64 animate-fade rounded-md bg-ink px-2.5 py-1 text-xs break-words text-canvas"
        >
          {who}
        </span>
      )}
    </span>
  );
}

/** Number of names in the tooltip. */
const MAX_NAMED = 8;

interface Known {
  /** The version of the message when the server was asked. */
  version: number;
  reactors: Account[];
}

/** The names of who reacted, loaded once they are wanted. */
function useReactorNames(message: LocalMessage, emoji: string, wanted: boolean): string | null {
  const client = useClient();
  const me = useSelf();
  const speaker = useSenderName();
  const [known, setKnown] = useState<Known | null>(null);
  const total = message.reactions.find((each) => each.emoji === emoji)?.count ?? 0;
  const isKnown = known?.version === message.version;
  const { id: message_id, version } = message;
  useEffect(() => {
    if (!wanted || isKnown) return;
    client.getMessageReactions({ message_id, emoji, limit: MAX_NAMED }).then(
      ({ items }) => setKnown({ version, reactors: items.map(({ reactor }) => reactor) }),
      // Without an answer there is no tooltip.
      () => {},
    );
  }, [client, wanted, isKnown, message_id, version, emoji]);
  if (!wanted || !known || known.reactors.length === 0) return null;
  const names = known.reactors.map((reactor) =>
    reactor.username === me.username ? "You" : speaker(reactor),
  );
  return listed(names, Math.max(total - names.length, 0));
}

function listed(names: readonly string[], more: number): string {
  const all = more > 0 ? [...names, `${more} more`] : names;
  return all.length === 1 ? (all[0] ?? "") : `${all.slice(0, -1).join(", ")} and ${all.at(-1)}`;
}

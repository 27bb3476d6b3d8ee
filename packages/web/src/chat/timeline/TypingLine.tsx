import { useMessages, useTyping } from "@parley/client/react";
import { useIsBlocked } from "../../lib/blocked.ts";
import { Dots } from "../../ui/Dots.tsx";
import { useChatContext } from "../context.ts";
import { useShortName } from "../sender-names.ts";

/** Who is typing. Lies over the end of the list, so that the messages do not move. */
export function TypingLine() {
  const { chat } = useChatContext();
  const shortName = useShortName();
  const { items } = useMessages(chat.id);
  // Agents whose answer already streams are left out.
  const answering = items.filter(({ finalized_at }) => finalized_at === null);
  const isBlocked = useIsBlocked();
  const actors = useTyping(chat.id).actors.filter(
    (actor) =>
      !answering.some(({ sender }) => sender.username === actor.username) && !isBlocked(actor),
  );
  if (actors.length === 0) return null;
  const names = actors.map(shortName);
  const who =
    names.length <= 2 ? names.join(" and ") : `${names[0]} and ${names.length - 1} others`;
  return (
    <p className="pointer-events-none absolute bottom-1 left-0 flex w-full animate-fade justify-center">
      <span className="flex w-full max-w-208 items-center gap-2 px-4 text-xs text-ink-3">
        <Dots />
        <span className="truncate">
          {who} {names.length === 1 ? "is" : "are"} typing
        </span>
      </span>
    </p>
  );
}

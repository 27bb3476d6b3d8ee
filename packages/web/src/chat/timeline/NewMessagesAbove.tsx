import { useClient } from "@parley/client/react";
import { useEffect, useRef } from "react";
import { useAction } from "../../lib/action.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { count } from "../../lib/names.ts";
import { Icon } from "../../ui/Icon.tsx";
import { useChatContext } from "../context.ts";
import { FLOATING, TO_NEW } from "./JumpToLatest.tsx";
import { isFirstUnreadOlder, isUnread } from "./rows.ts";

interface NewMessagesAboveProps {
  /** The `seq` up to which the person had read. */
  readUpTo: number;
  unread: number;
  onFound: (messageId: string) => Promise<void>;
}

/** Leads to the first unread message, which is not loaded: loads older pages until it is. */
export default function NewMessagesAbove({ readUpTo, unread, onFound }: NewMessagesAboveProps) {
  const { chat } = useChatContext();
  const { model } = useClient();
  const me = useSelf();
  const { busy, run } = useAction();
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => {
      isShown.current = false;
    };
  }, []);
  const loaded = () => model.get(`messages:${chat.id}`);
  const jump = async () => {
    while (isShown.current && isFirstUnreadOlder(loaded(), readUpTo)) {
      await model.loadOlder(chat.id);
    }
    // The person may have left the conversation, or sent a message.
    if (isFirstUnreadOlder(loaded(), readUpTo)) return;
    const first = loaded().items.find((message) => isUnread(message, me.username, readUpTo));
    if (first) await onFound(first.id);
  };
  return (
    <div className="pointer-events-none absolute inset-x-0 top-3 z-10 mx-auto flex max-w-208 justify-end px-3 md:px-4">
      <button
        type="button"
        aria-disabled={busy}
        aria-busy={busy || undefined}
        onClick={() => void run(() => jump().catch(showError))}
        className={`${FLOATING} ${TO_NEW} aria-busy:opacity-55`}
      >
        <span className="rotate-180">
          <Icon name="down" size={17} />
        </span>
        {count(unread, "new message")} above
      </button>
    </div>
  );
}

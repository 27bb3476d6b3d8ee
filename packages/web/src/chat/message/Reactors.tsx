import { useClient } from "@parley/client/react";
import type { Reaction } from "@parley/protocol";
import { useCallback, useEffect, useState } from "react";
import { useSelf } from "../../lib/me.ts";
import { fullTime, shortTime } from "../../lib/time.ts";
import { AccountLabel } from "../../ui/AccountLabel.tsx";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Skeleton } from "../../ui/Skeleton.tsx";
import { FetchProblem } from "../../ui/Unfetched.tsx";

interface ReactorsProps {
  messageId: string;
  onClose: () => void;
}

/** Everybody who reacted to a message, with the emoji and the time. */
export default function Reactors({ messageId, onClose }: ReactorsProps) {
  const { items, more, problem, loadMore } = useReactors(messageId);
  return (
    <Dialog title="Who reacted" onClose={onClose}>
      <div className="flex min-h-0 flex-col gap-3 overflow-y-auto px-5 pb-5">
        {!items && problem === null && <Skeleton className="h-24" />}
        {items?.length === 0 && (
          <p className="text-base text-ink-2">Nobody reacts to it any more.</p>
        )}
        <ul>
          {items?.map((reaction) => (
            <Reactor key={reaction.reactor.username + reaction.emoji} reaction={reaction} />
          ))}
        </ul>
        {problem !== null && <FetchProblem problem={problem} onRetry={loadMore} />}
        {more && problem === null && <Button onClick={loadMore}>Show more</Button>}
      </div>
    </Dialog>
  );
}

function Reactor({ reaction: { reactor, emoji, created_at } }: { reaction: Reaction }) {
  const me = useSelf();
  return (
    <li className="flex min-h-12 items-center gap-3">
      <AccountLabel account={reactor} isSelf={reactor.username === me.username} />
      <time dateTime={created_at} title={fullTime(created_at)} className="text-xs text-ink-3">
        {shortTime(created_at)}
      </time>
      <span className="font-emoji text-lg">{emoji}</span>
    </li>
  );
}

function useReactors(message_id: string) {
  const client = useClient();
  const [items, setItems] = useState<Reaction[] | null>(null);
  const [cursor, setCursor] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const load = useCallback(
    (from: string | null) =>
      client.getMessageReactions({ message_id, ...(from !== null && { cursor: from }) }).then(
        (page) => {
          setItems((before) => [...(from === null ? [] : (before ?? [])), ...page.items]);
          setCursor(page.next_cursor);
          setProblem(null);
        },
        (error: unknown) => setProblem(error),
      ),
    [client, message_id],
  );
  useEffect(() => {
    void load(null);
  }, [load]);
  return { items, more: cursor !== null, problem, loadMore: () => void load(cursor) };
}

import type { Account, ConversationChange } from "@parley/protocol";
import { useSelf } from "../../lib/me.ts";
import { fullTime, shortTime } from "../../lib/time.ts";
import { useChatContext } from "../context.ts";
import { describeChange } from "../group-changes.ts";
import { useSenderName } from "../sender-names.ts";

/** Changes of the group, such as new members, between the messages. */
export function Changes({ changes }: { changes: readonly ConversationChange[] }) {
  const me = useSelf();
  const { chat } = useChatContext();
  const speaker = useSenderName();
  const name = (account: Account, isFirst: boolean) => {
    if (account.username !== me.username) return speaker(account);
    return isFirst ? "You" : "you";
  };
  return (
    // No list: a feed may have articles only, and text between them.
    <div className="flex flex-col items-center gap-1 pt-5 md:pt-6">
      {changes.map((change) => (
        <div
          key={`${change.seq} ${change.kind}`}
          className="max-w-full px-3 text-center text-xs text-balance break-words text-ink-3"
        >
          {describeChange(change, name, chat.kind === "group")} ·{" "}
          <time dateTime={change.at} title={fullTime(change.at)} className="whitespace-nowrap">
            {shortTime(change.at)}
          </time>
        </div>
      ))}
    </div>
  );
}

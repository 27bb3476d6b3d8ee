import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { complain } from "../lib/action.ts";

export function Reactions({ message }: { message: LocalMessage }) {
  const client = useClient();
  if (message.reactions.length === 0) return null;
  return (
    <div className="flex flex-wrap gap-1 pt-0.5">
      {message.reactions.map(({ emoji, count, reacted }) => (
        <button
          key={emoji}
          type="button"
          aria-pressed={reacted}
          aria-label={`${emoji}, ${count}`}
          onClick={() => client.model.react(message.id, emoji).catch(complain)}
          className={`inline-flex h-7 animate-in items-center gap-1.5 rounded-full border px-2 text-sm tabular-nums transition-colors ${reacted ? "border-accent bg-surface text-accent" : "border-line bg-surface text-ink-2 hover:bg-hover"}`}
        >
          <span aria-hidden="true" className="font-emoji">
            {emoji}
          </span>
          <span className="font-medium">{count}</span>
        </button>
      ))}
    </div>
  );
}

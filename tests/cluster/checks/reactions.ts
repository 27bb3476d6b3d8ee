import type { FinalChat, FinalState, Violation } from "../final-state.ts";
import { isOf, type Operation } from "../history.ts";
import { possibleValues } from "./register.ts";

/** Each person's reaction has the state they last set, and each count is the sum over all people. */
export function checkReactions(history: readonly Operation[], { chats }: FinalState): Violation[] {
  const reacts = Map.groupBy(history.filter(isOf("react")), ({ message }) => message);
  return chats.flatMap((chat) =>
    chat.messages.flatMap(({ id, reactions }) => {
      const shown = new Map(reactions.map(({ emoji, count }) => [emoji, count]));
      const used = Map.groupBy(reacts.get(id) ?? [], ({ emoji }) => emoji);
      const emojis = new Set([...shown.keys(), ...used.keys()]);
      return [...emojis].flatMap((emoji) =>
        checkCount(chat, id, emoji, shown.get(emoji) ?? 0, used.get(emoji) ?? []),
      );
    }),
  );
}

function checkCount(
  chat: FinalChat,
  message: string,
  emoji: string,
  count: number,
  operations: readonly Operation<"react">[],
): Violation[] {
  const violations: Violation[] = [];
  let least = 0;
  let most = 0;
  for (const [client, mine] of Map.groupBy(operations, (react) => react.client)) {
    const settings = mine.map((operation) => ({ operation, value: operation.on }));
    const possible = possibleValues(false, settings);
    const seen = chat.reacted[client]?.[message]?.includes(emoji);
    const isVisible = chat.reacted[client] !== undefined;
    if (isVisible && !possible.has(seen ?? false)) {
      const what = `${client} has ${seen ? "" : "not "}reacted with ${emoji}`;
      violations.push({ what, operations: mine });
    }
    if (!possible.has(false)) least++;
    if (possible.has(true)) most++;
  }
  if (count >= least && count <= most) return violations;
  const what = `${count} reactions with ${emoji}, where there are ${least} to ${most}`;
  return [...violations, { what, operations }];
}

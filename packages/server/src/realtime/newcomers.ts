import type { SharedConversation } from "@parley/protocol";
import { conversationShared, type EventChange } from "../changes/change.ts";

/** Of those who took part at some value, those who have not left up to another. */
export const stillThere = (
  newcomers: readonly (readonly [username: string, seq: number])[],
  packets: readonly EventChange[],
  upTo: number,
): string[] =>
  newcomers
    .filter(([username, joined]) => {
      const left = packets.some(({ at, leaves }) => {
        const seq = at?.seq ?? 0;
        return seq > joined && seq <= upTo && leaves?.users.includes(username);
      });
      return !left;
    })
    .map(([username]) => username);

/** Tells them of the conversation as it is, and has them hear it from there on. */
export function invitation(
  shared: SharedConversation,
  users: readonly string[],
): EventChange | null {
  return users.length === 0 ? null : conversationShared(shared, users);
}

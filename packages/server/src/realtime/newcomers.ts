import type { SharedConversation } from "@parley/protocol";
import type { EventPacket } from "./bus.ts";
import { eventPacket } from "./packet.ts";

/** Of those who took part at some value, those who have not left up to another. */
export const stillThere = (
  newcomers: readonly (readonly [username: string, seq: number])[],
  packets: readonly EventPacket[],
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
): EventPacket | null {
  if (users.length === 0) return null;
  const { id, seq } = shared;
  const at = { conversation_id: id, seq };
  return eventPacket({
    frame: { method: "events.conversationNew", params: shared, at },
    to: { users },
    joins: { conversation: id, users },
  });
}

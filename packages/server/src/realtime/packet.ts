import type { EventFrame } from "@parley/protocol";
import type { Announcement } from "../changes/change.ts";
import type { EventPacket, Packet, StreamPart } from "./bus.ts";

type EventAnnouncement = Extract<Announcement, { frame: unknown }>;

export const eventPacket = ({ frame, ...rest }: EventAnnouncement): EventPacket => ({
  kind: "event",
  data: JSON.stringify(frame),
  at: frame.at,
  stream: streamPart(frame),
  account: frame.method === "events.accountUpdated" ? frame.params : undefined,
  ...rest,
});

function streamPart({ method, params }: EventFrame): StreamPart | undefined {
  if (method === "events.messageNew" && params.finalized_at === null) {
    return { message: params.id, from: 0, to: 0, begins: true, ends: false };
  }
  if (method === "events.messageDelta") {
    const { id, delta, offset } = params;
    const from = offset - Buffer.byteLength(delta);
    return { message: id, from, to: offset, begins: false, ends: false };
  }
  if (method === "events.messageComplete") {
    const to = Buffer.byteLength(params.content);
    return { message: params.id, from: 0, to, begins: false, ends: true };
  }
  return undefined;
}

export function packetOf(announcement: Announcement): Packet {
  if ("endedSession" in announcement) {
    return { kind: "session_ended", session_id: announcement.endedSession };
  }
  if ("queuedTurns" in announcement) return { kind: "turns_queued" };
  if ("endedTurns" in announcement) {
    return { kind: "turns_ended", turns: announcement.endedTurns };
  }
  return eventPacket(announcement);
}

import type { Announcement } from "../announcement.ts";
import type { EventPacket, Packet } from "./bus.ts";

type EventAnnouncement = Extract<Announcement, { frame: unknown }>;

export const eventPacket = ({ frame, ...rest }: EventAnnouncement): EventPacket => ({
  kind: "event",
  data: JSON.stringify(frame),
  at: frame.at,
  of:
    frame.method === "events.messageDelta" || frame.method === "events.messageComplete"
      ? frame.params.id
      : undefined,
  account: frame.method === "events.accountUpdated" ? frame.params : undefined,
  ...rest,
});

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

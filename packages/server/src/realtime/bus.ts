import type { Audience, Membership } from "../announcement.ts";

/** What travels between nodes: an event encoded once, or a change that concerns live sockets. */
export type Packet =
  | {
      kind: "event";
      to: Audience;
      /** The encoded frame, as sockets get it. */
      data: string;
      /** No client of this account gets it. */
      exceptUser?: string | undefined;
      exceptSocket?: string | undefined;
      joins?: Membership | undefined;
      leaves?: Membership | undefined;
    }
  | { kind: "session_ended"; session_id: string }
  | { kind: "turns_queued" }
  | { kind: "turns_ended"; ids: readonly number[] };

/**
 * Carries packets to every node that has somebody to deliver them to, this one included.
 * Packets of one conversation arrive in the order in which they were published.
 * Delivery is best effort: the store holds the truth, and clients heal from it by `getUpdates`.
 */
export interface Bus {
  publish(packet: Packet): void;
  /** Set once, before the first packet. */
  onPacket(listener: (packet: Packet) => void): void;
  /** Rejects when other nodes cannot be reached. */
  ready(): Promise<void>;
  close(): Promise<void>;
}

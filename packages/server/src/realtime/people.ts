import type { Interest } from "../changes/bus.ts";
import type { AccountRecord } from "../rules/accounts.ts";

/** An open socket, as the hub uses it. */
export interface Client {
  readonly id: string;
  readonly session_id: string;
  /** A call that waits for events counts as a socket, but nobody is online because of it. */
  readonly isCall?: true;
  subscribe(topic: string): void;
  unsubscribe(topic: string): void;
  isSubscribed(topic: string): boolean;
  /** Sends a frame to this client alone. */
  send(data: string): void;
  close(code: number, reason: string): void;
}

/** An account that has clients on this node; all of them share it. */
export interface Person {
  account: AccountRecord;
  readonly clients: Set<Client>;
  /** Incremented whenever a list of the account's conversations read earlier may be outdated. */
  membership: number;
  /** The events that this node receives from other nodes for this person. */
  readonly interest: Interest;
}

/** The people who have clients on this node, by username. */
export type People = ReadonlyMap<string, Person>;

export const conversationTopic = (id: string) => `c/${id}`;
export const userTopic = (username: string) => `u/${username}`;

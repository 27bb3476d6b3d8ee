import type { Awaitable } from "./awaitable.ts";

/** Addresses at which other programs post into a group. */
export interface IncomingHookReads {
  incomingHook(id: string): Awaitable<IncomingHookRecord | null>;
  /** The hooks of a conversation, ordered by creation. */
  incomingHooks(chat: string): Awaitable<IncomingHookRecord[]>;
  /** The hooks that a person created, by username, ordered by creation. */
  incomingHooksBy(creator: string): Awaitable<IncomingHookRecord[]>;
}

export interface IncomingHookWrites {
  /** From then on the account of the hook counts as a former member: it may have sent messages. */
  insertIncomingHook(hook: IncomingHookRecord): Awaitable<void>;
  deleteIncomingHook(id: string): Awaitable<void>;
}

export interface IncomingHookRecord {
  readonly id: string;
  readonly secret_hash: string;
  /** The UUID of the group. */
  readonly chat: string;
  readonly name: string;
  /** The username of the person who created it. */
  readonly creator: string;
  /** The username of the account that it posts as. */
  readonly account: string;
  readonly created_at: number;
}

import type { Change, DurableChange, TransientChange } from "../changes/change.ts";
import type { ChangeLog } from "../changes/log.ts";
import { Failure } from "../rules/failure.ts";
import type { Awaitable } from "./awaitable.ts";
import type { BackgroundWork } from "./background-work.ts";
import type { LogLimits } from "./changes.ts";
import type { HotConversationReads, HotConversationWrites } from "./conversations.ts";
import type { ImportedMessageWrites } from "./imported-messages.ts";
import type { HotMessageWrites } from "./messages.ts";
import type { reads, writes } from "./methods.ts";
import type { SearchHit, SearchQuery, Worked } from "./search.ts";
import type { Bound } from "./sql.ts";
import type { HotTurnWrites } from "./turns.ts";

/**
 * Stores all durable data. There is one interface, with one contract suite that all backends pass.
 *
 * Every backend guarantees:
 * - A unit of work is atomic: all of its changes are stored, or, if it throws, none.
 * - Units that touch one conversation take effect one after another: its counter has no gaps.
 * - `write` resolves, and the unit's changes are handed to `onCommit`, only once the
 *   changes are safely on disk, in the order in which the units took effect.
 * - `read` sees every unit whose `write` has resolved, and returns nothing that a crash could undo.
 * - A unit may run again from its start after a conflict, and may be run inside one transaction
 *   with others: it awaits nothing but its own `tx` and has no effect outside it.
 */
export interface Store {
  read<Result>(unit: (tx: ReadTx) => Awaitable<Result>): Promise<Result>;
  write<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result>;
  /**
   * Runs a unit without waiting for the disk of this machine: for what is replaced soon or
   * can be done again, such as streamed text, leases and positions of subscriptions.
   * Its changes survive the end of this process, but not a power cut of this machine. A store on
   * another machine keeps them as it keeps those of `write`.
   */
  note<Result>(unit: (tx: WriteTx) => Awaitable<Result>): Promise<Result>;
  /** The durable changes that units have emitted. */
  readonly changes: ChangeLog;
  /** Finds messages that the viewer can see, newest first. Includes every acknowledged write. */
  search(query: SearchQuery, worked?: Worked): Promise<SearchHit[]>;
  /** Calls the listener with committed changes. It must not throw. Set once, before the first write. */
  onCommit(listener: (changes: readonly Change[]) => void): void;
  /** Rejects when the store cannot be reached. */
  ready(): Promise<void>;
  /** Work that the store does by itself, such as indexing, and whether it fails. */
  readonly background: BackgroundWork;
  close(): Promise<void>;
}

export interface StoreOptions {
  /** The id that the change log has for this process. Default: a random one. */
  readonly node?: string;
  /** Called after the schema of a database that was in use was migrated. */
  migrated?(from: number, to: number): void;
  readonly logLimits?: Partial<LogLimits>;
}

/** Thrown when the store cannot be reached, or it is unknown whether a unit has committed. */
export class Unavailable extends Failure {
  override name = "Unavailable";
  constructor(
    why: string,
    { retryAfter = 1, cause }: { retryAfter?: number; cause?: unknown } = {},
  ) {
    super("unavailable", `unavailable: ${why}`, { retry_after: retryAfter });
    this.cause = cause;
  }
}

/** A store that several nodes share. */
export interface SharedStore extends Store {
  /** Identifies the installation, where several share other services. */
  readonly installation: string;
}

/** What a unit of work may read. Each resource's file documents its methods. */
export interface ReadTx extends Bound<typeof reads>, HotConversationReads {}

/**
 * What a unit of work may write. Methods trust the records that they are given: a unit reads those
 * that it decides by, because a record from an earlier unit may be outdated. Accounts and conversations
 * that they are given by id must exist, unless the method says otherwise. Lists of ids, usernames and
 * records may be empty unless their type is `NonEmpty`.
 *
 * A unit that writes owns a conversation from the first call that reads it with `conversation`,
 * `message`, `turn`, `openTurns` or `toolCall`, or changes it: no other unit changes the conversation
 * until this one ends. Some methods require that the unit owns it already.
 */
export interface WriteTx
  extends ReadTx,
    Bound<typeof writes>,
    HotConversationWrites,
    HotMessageWrites,
    ImportedMessageWrites,
    HotTurnWrites {
  /** Records a change of this unit: subscribers receive it once the unit is on disk. */
  emit(change: DurableChange): void;
  /** Sends something transient in the order of the unit's changes, once the unit has committed. */
  signal(change: TransientChange): void;
}

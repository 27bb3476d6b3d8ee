import type { Delivery } from "@parley/protocol";
import type { Change, LoggedChange } from "../../changes/change.ts";
import type { Cursor, LogEntry } from "../changes.ts";
import type { BackgroundRunner } from "./background-work.ts";

/**
 * Encodes the durable changes of a transaction for the log, in their order; null when there are none. This runs in every transaction.
 */
export function encodeChanges(changes: readonly Change[]): string | null {
  let body = "";
  for (const change of changes) {
    if (change.kind === "event" && change.delivery === "transient") continue;
    body += `${body === "" ? "[" : ","}${encodeChange(change)}`;
  }
  return body === "" ? null : `${body}]`;
}

function encodeChange(change: Change): string {
  if (change.kind !== "event" || change.shows === undefined) return JSON.stringify(change);
  return JSON.stringify({ ...change, data: change.outline, outline: undefined });
}

const KINDS: Record<LoggedChange["kind"], true> = {
  event: true,
  session_ended: true,
  account_suspended: true,
  elicitation_answered: true,
  turns_queued: true,
  turns_ended: true,
};
const DELIVERIES: Record<Exclude<Delivery, "transient">, true> = {
  counted: true,
  standing: true,
  durable: true,
};

/**
 * Decodes an entry of the log. Unknown fields are kept, and changes of unknown kinds are left out:
 * a node of a newer version may have written them. No schema checks the rest, which only nodes write:
 * every node reads every change, and the check would take four times as long as the decoding.
 */
const decodeChanges = (body: string): LoggedChange[] =>
  (JSON.parse(body) as LoggedChange[]).filter(isKnown);

const isKnown = (change: LoggedChange) =>
  Object.hasOwn(KINDS, change.kind) &&
  (change.kind !== "event" || Object.hasOwn(DELIVERIES, change.delivery));

export interface EntryRow {
  id: number;
  node: string;
  body: string;
}

export const entryOf = ({ id, node, body }: EntryRow): LogEntry => ({
  cursor: id,
  node,
  changes: body === "[]" ? [] : decodeChanges(body),
});

/** When entries of the log are pruned. */
export interface LogLimits {
  readonly keptMs: number;
  readonly maxEntries: number;
  /** Of all entries together, estimated from a sample. */
  readonly maxBytes: number;
  readonly pruneEveryMs: number;
}

/** A subscriber that was away for longer fetches the state instead. */
export const LOG_LIMITS: LogLimits = {
  keptMs: 7 * 24 * 60 * 60_000,
  maxEntries: 1_000_000,
  maxBytes: 1024 ** 3,
  pruneEveryMs: 60_000,
};

const SAMPLED_ENTRIES = 100;

/** Ids spread evenly over the log, whose average size stands for that of all entries. */
export function sampleIds(first: Cursor, last: Cursor): Cursor[] {
  const step = Math.max(1, (last - first) / SAMPLED_ENTRIES);
  const ids: Cursor[] = [];
  for (let id = first; id <= last; id += step) ids.push(Math.floor(id));
  return ids;
}

export interface LogSize {
  /** The oldest entries, in order. */
  readonly oldest: readonly { id: Cursor; at: number }[];
  readonly last: Cursor;
  readonly averageBytes: number;
  readonly now: number;
}

/** The last of the oldest entries to prune; null when all are kept. The newest one always is. */
export function pruneUpTo({ oldest, last, averageBytes, now }: LogSize, limits: LogLimits) {
  const maxEntries = Math.min(limits.maxEntries, limits.maxBytes / Math.max(1, averageBytes));
  let upTo: Cursor | null = null;
  for (const { id, at } of oldest) {
    if (id === last || (id > last - maxEntries && at >= now - limits.keptMs)) break;
    upTo = id;
  }
  return upTo;
}

/** Prunes batches of entries until none are left to prune, at intervals. */
export function pruneRegularly(
  background: BackgroundRunner,
  everyMs: number,
  pruneBatch: () => Promise<boolean>,
) {
  let round: Promise<void> | null = null;
  let stopped = false;
  const prune = async () => {
    while (!stopped && (await pruneBatch()));
  };
  const timer = setInterval(() => {
    round ??= background.run("pruning", prune).finally(() => {
      round = null;
    });
  }, everyMs);
  return {
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await round;
    },
  };
}

import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { Announcement } from "../../announcement.ts";
import type { ReadTx, Store, WriteTx } from "../store.ts";
import { accountReads, accountWrites } from "./accounts.ts";
import { agentReads, agentWrites } from "./agents.ts";
import { startBackground } from "./background.ts";
import { type Connection, connection, migrate, openDatabase } from "./connection.ts";
import { conversationReads, conversationWrites } from "./conversations.ts";
import { type GroupWriter, groupWriter } from "./group.ts";
import { followHistory, historyReads, historyWrites } from "./history.ts";
import { messageReads, messageWrites } from "./messages.ts";
import { reactionReads, reactionWrites } from "./reactions.ts";
import { foreignSessionEnds, sessionReads, sessionWrites } from "./sessions.ts";
import { turnReads, turnWrites } from "./turns.ts";

const MAINTENANCE_MS = 1000;
/** After this many units of work what the log holds is moved into the database. */
const UNITS_PER_CHECKPOINT = 8000;
/** After this many the log is made to begin anew, which holds up writers; it then has some 300 MB. */
const UNITS_PER_LOG = 100_000;
/** How many messages are indexed for search a second while nobody searches. */
const INDEXED_PER_ROUND = 2000;

/** The embedded store: one SQLite file, owned by one process. */
export function openSqliteStore(path: string): Store {
  const db = openDatabase(path);
  migrate(db);
  const saveMark = followHistory(db, path);
  // Readers have a connection of their own, which never sees a transaction half done.
  const readerDb = openDatabase(path);
  const writer = connection(db);
  const log = openLog(path);
  const background = startBackground(path);
  let listener: (announcements: readonly Announcement[]) => void = () => {};

  const group = groupWriter({
    db,
    connection: writer,
    tx: { ...reads(writer), ...writes(writer) },
    sync: log.sync,
    committed: (announcements) => listener(announcements),
  });
  const readTx = reads(connection(readerDb));
  const endedElsewhere = foreignSessionEnds(db, readerDb);
  const maintenance = maintain(group, background, saveMark);

  return {
    async read(unit) {
      const result = await unit(readTx);
      await group.settled();
      return result;
    },
    write: (unit) => group.write(unit) as Promise<never>,
    note: (unit) => group.note(unit) as Promise<never>,
    search: (query) => background.ask({ kind: "search", query }),
    onCommit: (handler) => {
      listener = handler;
    },
    endedSessions: async (ids) => endedElsewhere(ids),
    ready: async () => {
      readerDb.query("SELECT 1").get();
      await group.settled();
    },
    close: async () => {
      await maintenance.stop();
      await group.close();
      await background.close();
      saveMark();
      readerDb.close();
      db.close();
      log.close();
    },
  };
}

const reads = (db: Connection): ReadTx => ({
  ...accountReads(db),
  ...sessionReads(db),
  ...conversationReads(db),
  ...messageReads(db),
  ...reactionReads(db),
  ...agentReads(db),
  ...turnReads(db),
  ...historyReads(db),
});

const writes = (db: Connection): Omit<WriteTx, "emit" | keyof ReadTx> => ({
  ...accountWrites(db),
  ...sessionWrites(db),
  ...conversationWrites(db),
  ...messageWrites(db),
  ...reactionWrites(db),
  ...agentWrites(db),
  ...turnWrites(db),
  ...historyWrites(db),
});

/** The write-ahead log, which holds every commit until it is synced. */
function openLog(path: string) {
  const descriptor = openSync(`${path}-wal`, "r");
  // A crash of the machine must not forget the new file's very name.
  const folder = openSync(dirname(path), "r");
  fsyncSync(folder);
  closeSync(folder);
  return {
    sync: () =>
      new Promise<void>((resolve, reject) =>
        fdatasync(descriptor, (error) => (error ? reject(error) : resolve())),
      ),
    close: () => closeSync(descriptor),
  };
}

/** Once a second: saves the mark, indexes new messages for search, and keeps the log short. */
function maintain(
  group: GroupWriter,
  background: ReturnType<typeof startBackground>,
  saveMark: () => void,
) {
  let moved = 0;
  let begun = 0;
  let round: Promise<unknown> = Promise.resolve();
  let busy = false;
  const checkpoint = () => background.ask({ kind: "checkpoint" });
  const once = async () => {
    saveMark();
    await background.ask({ kind: "index", most: INDEXED_PER_ROUND });
    if (group.written() - moved < UNITS_PER_CHECKPOINT) return;
    moved = group.written();
    await checkpoint();
    if (moved - begun < UNITS_PER_LOG) return;
    begun = moved;
    // What was written during the first leaves little for the second, which then covers it all:
    // only so does the log begin anew instead of growing for as long as somebody writes.
    await group.pause(checkpoint);
  };
  const timer = setInterval(() => {
    if (busy) return;
    busy = true;
    round = once()
      .catch(() => undefined)
      .finally(() => {
        busy = false;
      });
  }, MAINTENANCE_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await round;
    },
  };
}

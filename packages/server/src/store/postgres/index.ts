import type { SQL } from "bun";
import type { Change } from "../../changes/change.ts";
import { backgroundRunner, watchWrites } from "../background-work.ts";
import { type Cursor, LOG_LIMITS, pruneChanges, pruneRegularly } from "../changes.ts";
import { changeLog, changeWriter, wasCommitted } from "../hot/changes-postgres.ts";
import { hotConversationReads, hotConversationWrites } from "../hot/conversations-postgres.ts";
import { hotMessageWrites, importedMessageWrites } from "../hot/messages-postgres.ts";
import { hotTurnWrites } from "../hot/turns-postgres.ts";
import { hotWebhookReads, hotWebhookWrites } from "../hot/webhooks-postgres.ts";
import * as shared from "../methods.ts";
import { SEARCH_DEADLINE_MS, SEARCH_SLOTS, searchQueue } from "../search-queue.ts";
import type { ReadTx, SharedStore, StoreOptions, WriteTx } from "../store.ts";
import { refuseUnfinished } from "./claim.ts";
import {
  ANSWER_TIMEOUT_MS,
  connections,
  openPool,
  type PostgresOptions,
  serverProbe,
} from "./connection.ts";
import type { Lane } from "./job-queue.ts";
import { migrate } from "./migrations.ts";
import { readLane } from "./read-lane.ts";
import { search } from "./search.ts";
import { binder, type ReadMethods, type Unit, type WriteMethods } from "./unit.ts";
import { commitOrder, writeLane } from "./write-lane.ts";

/** Numbers of connections by their use. Units that wait for locks do so on connections of their own. */
const CONNECTIONS = { read: 4, write: 3, lockWait: 4, note: 1, noteLockWait: 1 };

const reads: ReadMethods = {
  ...shared.reads,
  ...hotConversationReads,
  ...hotWebhookReads,
};

const writes: WriteMethods = {
  ...reads,
  ...shared.writes,
  ...hotConversationWrites,
  ...hotMessageWrites,
  ...hotWebhookWrites,
  ...importedMessageWrites,
  ...hotTurnWrites,
};

const readTx = binder<ReadTx>(reads);
const writeTx = binder<WriteTx>({
  ...writes,
  emit: (unit: Unit, change: Change) => unit.emit(change),
  signal: (unit: Unit, change: Change) => unit.emit(change),
});

export interface PostgresStoreOptions extends PostgresOptions, StoreOptions {
  /** How long to wait for the answer to a statement. */
  readonly answerTimeoutMs?: number;
}

/** The store that several nodes share. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<SharedStore> {
  const most = Object.values(CONNECTIONS).reduce((sum, each) => sum + each, 0);
  const pool = openPool(options, most);
  const installation = await prepare(pool, options).catch(async (error) => {
    await pool.close({ timeout: 0 });
    throw error;
  });
  let listener: (changes: readonly Change[]) => void = () => {};
  const committed = (changes: readonly Change[]) => {
    if (changes.length > 0) listener(changes);
  };

  const { answerTimeoutMs = ANSWER_TIMEOUT_MS } = options;
  const timeout = { ms: answerTimeoutMs, server: serverProbe(options) };
  const connected = (most: number) => connections(pool, most, timeout);
  const reading = readLane(connected(CONNECTIONS.read));
  // The server cancels a search at its deadline, because nobody waits for it any more.
  const searchPool = openPool(options, SEARCH_SLOTS, {
    statement_timeout: `${SEARCH_DEADLINE_MS}`,
  });
  const searchConnections = connections(searchPool, SEARCH_SLOTS, timeout);
  const changes = changeLog((unit) => on(reading, unit));
  let isClosed = false;
  const isStored = (entry: Cursor) => wasCommitted(changes, entry, () => isClosed);
  const order = commitOrder();
  const log = changeWriter(options.node ?? Bun.randomUUIDv7());
  const background = backgroundRunner("writes", "pruning");
  const finished = watchWrites(background);
  const common = { finished, order, log, wasCommitted: isStored, committed };
  const writing = writeLane({
    connections: connected(CONNECTIONS.write),
    lockWaitConnections: connected(CONNECTIONS.lockWait),
    ...common,
  });
  const noting = writeLane({
    connections: connected(CONNECTIONS.note),
    lockWaitConnections: connected(CONNECTIONS.noteLockWait),
    ...common,
  });
  const on = <Result>(lane: Lane, work: (unit: Unit) => Result | Promise<Result>) =>
    lane.enter(work) as Promise<Result>;
  const limits = { ...LOG_LIMITS, ...options.logLimits };
  // The interval is random, so that nodes prune at different times and the first leaves nothing to do.
  const pruning = pruneRegularly(background, limits.pruneEveryMs * (0.5 + Math.random()), () =>
    on(writing, (unit) => pruneChanges(unit, limits)),
  );

  return {
    installation,
    read: (unit) => on(reading, (run) => unit(readTx(run))),
    write: (unit) => on(writing, (run) => unit(writeTx(run))),
    note: (unit) => on(noting, (run) => unit(writeTx(run))),
    changes,
    search: searchQueue((query, _slot, worked) =>
      searchConnections.use(async (connection) => {
        // What it costs the database is not known otherwise.
        const startedAt = performance.now();
        try {
          return await search(connection, query);
        } finally {
          worked(performance.now() - startedAt);
        }
      }),
    ),
    onCommit: (handler) => {
      listener = handler;
    },
    background,
    ready: () => on(reading, async (run) => void (await run.get`SELECT 1`)),
    close: async () => {
      isClosed = true;
      await pruning.stop();
      await Promise.all([noting, writing, reading].map((lane) => lane.close()));
      await searchConnections.close();
      await Promise.all([pool.close(), searchPool.close()]);
    },
  };
}

async function prepare(pool: SQL, { migrated }: PostgresStoreOptions): Promise<string> {
  const { installation, from, to } = await migrate(pool);
  if (from > 0 && from < to) migrated?.(from, to);
  await refuseUnfinished(pool);
  return installation;
}

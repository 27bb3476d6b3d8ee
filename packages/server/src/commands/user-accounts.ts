import { rmSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { existingBlobs } from "../compose/backends.ts";
import { type Config, ConfigError, readConfig } from "../config/config.ts";
import { eraseAccount, finishErasure } from "../domain/erasures.ts";
import { restore, stopAgentsOf, suspend } from "../domain/suspension.ts";
import { accountData } from "../files/exports/account-data.ts";
import { zip } from "../files/exports/zip.ts";
import { isOperator } from "../security/operators.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx, Store } from "../store/store.ts";
import { createLease } from "../upkeep/jobs.ts";
import { megabytes, refuseUnwritable, syncFolder } from "./backup/support.ts";
import { command } from "./command.ts";
import { openService, person } from "./people.ts";

/** How often to look whether the server has finished an erasure. */
const POLL_MS = 200;

export const suspendUser = command({
  name: "users suspend",
  summary: "End all sessions and agents of a person, who cannot sign in until restored.",
  details: "Works while the server runs: sockets of the person close within seconds.",
  arguments: person,
  examples: [{ line: "users suspend alice", summary: "What alice has written stays." }],
  async run({ arguments: given }) {
    await using service = await openService();
    const { config, store, log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    await log.write(async (tx, record) => {
      await refuseOperator(tx, account, config, "suspended");
      await suspend(tx, record, account, {});
    });
    await stopAgentsOf(store, account);
    return { json: { username, suspended: true }, text: `${username} is suspended.` };
  },
});

export const restoreUser = command({
  name: "users restore",
  summary: "Let a suspended person sign in again.",
  arguments: person,
  examples: [{ line: "users restore alice", summary: "The password of alice is the same." }],
  async run({ arguments: given }) {
    await using service = await openService();
    const { log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    await log.write((tx, record) => restore(tx, record, account, {}));
    return { json: { username, suspended: false }, text: `${username} can sign in.` };
  },
});

export const eraseUser = command({
  name: "users erase",
  summary: "Delete the account of a person for good.",
  details: `Ends all sessions and agents, leaves all groups, and removes everything that identifies the
person but the username, which nobody else gets. Messages stay as those of a deleted account. Works
while the server runs, which finishes the work if this command is interrupted. It cannot be undone.
Backups still have the account.`,
  arguments: person,
  options: {
    messages: { type: "boolean", summary: "Delete messages of the person and their agents too." },
    yes: { type: "boolean", summary: "Required, because it cannot be undone." },
  },
  examples: [
    { line: "users erase alice --yes", summary: "Messages of alice stay, without the name." },
    { line: "users erase alice --messages --yes", summary: "Nothing that alice wrote stays." },
  ],
  async run({ arguments: given, options: { messages, yes }, progress }) {
    await using service = await openService();
    const { config, store, log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    if (!yes) {
      throw new ConfigError(
        `Erasing ${username} cannot be undone. Run the command again with --yes to do it.`,
      );
    }
    await log.write(async (tx, record) => {
      await refuseOperator(tx, account, config, "erased");
      await eraseAccount(tx, record, account, { messages, details: {} });
    });
    const deleted = await finish(store, account, progress);
    return {
      json: { username, erased: true, messages_deleted: deleted },
      text: `${username} is erased.`,
    };
  },
});

/** Finishes an erasure, or waits until the server has. Returns how many messages were deleted here. */
async function finish(store: Store, { id }: AccountRecord, progress: (text: string) => void) {
  const held = createLease(store, "erasures", Bun.randomUUIDv7());
  const find = () =>
    store.read(async (tx) => (await tx.openErasures()).find(({ account }) => account.id === id));
  let messages = 0;
  for (let open = await find(); open; open = await find()) {
    if (!(await held.claim())) {
      await Bun.sleep(POLL_MS);
      continue;
    }
    await finishErasure(store, open, async (deleted) => {
      messages += deleted;
      progress(`deleted ${messages} messages`);
      await held.renew();
    });
  }
  await held.release();
  return messages;
}

async function refuseOperator(
  tx: ReadTx,
  account: AccountRecord,
  { operators }: Config,
  done: string,
): Promise<void> {
  if (!(await isOperator(tx, account, operators))) return;
  const { username } = account;
  throw new ConfigError(
    `${username} is an operator and cannot be ${done}. Run "parley operators remove ${username}" first, and remove the name from PARLEY_OPERATORS.`,
  );
}

export const exportUser = command({
  name: "users export",
  summary: "Write everything the service has of a person to a file.",
  details: `A ZIP archive of JSON Lines: the account, sessions, agents without their keys, usage,
blocked people, hooks without their secrets, reports, conversations, the messages that the person
can see, what they wrote in conversations that they have left, reactions, and the files that
they have uploaded. Works while the server runs.`,
  arguments: { ...person, file: "The file to write. It must not exist." },
  examples: [{ line: "users export alice alice.zip", summary: "To answer a request of alice." }],
  async run({ arguments: given, progress }) {
    const config = readConfig();
    const file = resolve(given.file);
    refuseUnwritable(file);
    await using service = await openService(config);
    const { store, log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    let messages = 0;
    const data = accountData({
      store,
      blobs: await existingBlobs(config.files),
      account,
      progress: (count) => {
        messages += count;
        progress(`exported ${messages} messages`);
      },
    });
    const bytes = await writeFile(file, zip(data, new Date()));
    await log.record("account_exported", { account: username });
    return {
      json: { username, file, bytes, messages },
      text: `Wrote ${messages} messages of ${username}, ${megabytes(bytes)}: ${file}`,
    };
  },
});

/** Writes a file that only its owner can read. It gets its name when it is complete. */
async function writeFile(file: string, content: AsyncIterable<Uint8Array>): Promise<number> {
  const partial = `${file}.partial`;
  rmSync(partial, { force: true });
  let bytes = 0;
  try {
    await using written = await open(partial, "wx", 0o600);
    for await (const piece of content) {
      await written.writeFile(piece);
      bytes += piece.length;
    }
    await written.sync();
    await rename(partial, file);
  } finally {
    rmSync(partial, { force: true });
  }
  syncFolder(dirname(file));
  return bytes;
}

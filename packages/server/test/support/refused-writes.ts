import { until } from "@parley/testkit/until.ts";
import type { AccountRecord } from "../../src/store/accounts.ts";
import type { MessageRecord } from "../../src/store/message-records.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";

/**
 * A program in which a checkpoint fails, because the system refuses to write the end of the database
 * file for a while. It prints what becomes of the store. Its arguments are the path of the database,
 * and whether the store is closed at the end.
 */
const [path = "", ending] = process.argv.slice(2);
const LIMIT_BYTES = 1024 * 1024;
const at = Date.UTC(2026, 10, 15);

const limitFiles = (bytes: number | "unlimited") =>
  Bun.spawnSync(["prlimit", `--pid=${process.pid}`, `--fsize=${bytes}:`]);
// The default action of the signal ends the process.
process.on("SIGXFSZ", () => {});

/** Makes the database file longer than the limit. Returns a message in it. */
async function prepare() {
  const store = openSqliteStore(path);
  const made = await store.write(async (tx) => {
    const person = { username: "alice", kind: "human", display_name: "Alice", at } as const;
    const alice = (await tx.insertAccount(person)) as AccountRecord;
    const uuid = Bun.randomUUIDv7();
    const title = "x".repeat(LIMIT_BYTES);
    const group = { uuid, kind: "group", title, created_by: alice.id, at } as const;
    await tx.insertMembers(await tx.insertConversation(group), [alice.id], at);
    const conversation = await tx.conversation(uuid, alice.id);
    if (!conversation) throw new Error("the conversation is missing");
    const plain = { client_msg_id: null, reply_to_id: null, mentions: [] };
    const content = "first";
    const sent = await tx.insertMessage({ conversation, sender: alice, content, ...plain, at });
    return { message_id: sent?.id ?? "", viewer_id: alice.id };
  });
  await store.close();
  return made;
}

const made = await prepare();
const store = openSqliteStore(path, { eraseMs: 0 });
const edit = (content: string) =>
  store.write(async (tx) => {
    const record = (await tx.message(made.message_id)) as MessageRecord;
    await tx.editMessage(record, content, [], at);
  });
const outcomeOf = (work: Promise<unknown>) => work.then(() => "done", String);

limitFiles(LIMIT_BYTES);
// Needs pages at the end of the file, and makes a checkpoint due.
await edit(`acknowledged ${"x".repeat(50_000)}`);
await until(() => store.background.failing().includes("checkpoint"), "a checkpoint fails");
limitFiles("unlimited");
const write = await outcomeOf(edit("refused"));
const read = await outcomeOf(store.read((tx) => tx.message(made.message_id)));
const ready = await outcomeOf(store.ready());
if (ending === "closed") await store.close();
process.stdout.write(JSON.stringify({ ...made, write, read, ready }));
process.exit();

import type { Store } from "../../src/store/store.ts";
import { newAccount, newAgent, newGroup, START, send } from "./store-contract/fixture.ts";

/** A group that a writer left without a stored change, and others with one; a hook has not posted. */
export const groupWithFormerMembers = (store: Pick<Store, "write">) =>
  store.write(async (tx) => {
    const names = ["alice", "writer", "silent", "back"];
    const people = [];
    for (const username of names) people.push(await newAccount(tx, { username }));
    const [alice, writer, silent, back] = people as [Person, Person, Person, Person];
    const hook = await newAgent(tx, alice, "alerts");
    const chat = await newGroup(tx, people);
    await send(tx, chat, writer, "hello");
    const left = { kind: "left", subjects: [silent, back] } as const;
    await tx.changeGroup(chat.id, { actor: silent, changes: [left], at: START });
    await tx.deleteMembers(chat.id, [writer.id, silent.id, back.id]);
    await tx.insertMembers(chat.id, [back.id], START);
    const given = { id: "hook", secret_hash: "hash", name: "alerts", creator: "alice" };
    const place = { chat: chat.uuid, account: hook.username };
    await tx.insertIncomingHook({ ...given, ...place, created_at: START });
    return [writer.id, silent.id, hook.id].toSorted((one, other) => one - other);
  });

type Person = Awaited<ReturnType<typeof newAccount>>;

export const FORMER_MEMBERS = "SELECT account_id FROM former_members ORDER BY account_id";

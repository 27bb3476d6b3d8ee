import { describe, expect, test } from "bun:test";
import type { Account, Conversation, Message, SharedConversation } from "@parley/protocol";
import fc from "fast-check";
import type { Announcement } from "../../src/announcement.ts";
import type {
  AccountRecord,
  ConversationRecord,
  FinishedTurn,
  MessageRecord,
  NewAccount,
  NewMessage,
  NewTurn,
  ReadTx,
  SearchQuery,
  Store,
  TurnRecord,
  WriteTx,
} from "../../src/store/store.ts";

/** A store of its own for one test. */
export interface OpenedStore {
  readonly store: Store;
  /** Closes it and opens it again on the same data. */
  reopen(): Promise<Store>;
  /** Closes it and removes its data. */
  dispose(): Promise<void>;
}

/** Everything `Store` promises, for whichever backend. */
export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  const check: Check = (sentence, run) =>
    test(sentence, async () => {
      await using made = await world(open);
      await run(made);
    });
  describe(`the store on ${name}`, () => {
    describe("units of work", () => unitsOfWork(check));
    describe("order", () => order(check));
    describe("accounts", () => accounts(check));
    describe("sessions", () => sessions(check));
    describe("conversations", () => conversations(check));
    describe("messages", () => messages(check));
    describe("hiding and deleting", () => hidingAndDeleting(check));
    describe("reactions", () => reactions(check));
    describe("reading", () => reading(check));
    describe("history", () => history(check));
    describe("updates", () => updates(check));
    describe("search", () => search(check));
    describe("agents", () => agents(check));
    describe("turns", () => turns(check));
    describe("spending", () => spending(check));
    describe("closing", () => closing(check));
  });
}

/** A test with a store, and people, of its own. */
type Check = (sentence: string, run: (world: World) => Promise<void>) => void;
type World = Awaited<ReturnType<typeof world>>;
type SendOptions = Partial<Omit<NewMessage, "conversation" | "sender" | "content">>;

const START = Date.UTC(2026, 10, 15);
/** Nobody has this id: what everybody sees. */
const NOBODY = -1;
let last = 0;
const unique = () => ++last;

async function world(open: () => Promise<OpenedStore>) {
  const opened = await open();
  const { store } = opened;
  const announced: Announcement[] = [];
  let arrived = Promise.withResolvers<void>();
  store.onCommit((announcements) => {
    announced.push(...announcements);
    arrived.resolve();
    arrived = Promise.withResolvers();
  });

  return {
    store,
    announced,
    reopen: opened.reopen,
    [Symbol.asyncDispose]: opened.dispose,
    /** Resolves once somebody has been told the end of this session: all before it has come then. */
    heard: async (marker: string) => {
      while (!announced.some((one) => "endedSession" in one && one.endedSession === marker)) {
        await arrived.promise;
      }
    },
    people: <Names extends string[]>(...names: Names) =>
      store.write((tx) => inTurn(names, (username) => newAccount(tx, { username }))) as Promise<{
        [Place in keyof Names]: AccountRecord;
      }>,
    group: (...members: AccountRecord[]) => store.write((tx) => newGroup(tx, members)),
    send: (room: Room, sender: AccountRecord, content: string, options?: SendOptions) =>
      store.write((tx) => send(tx, room, sender, content, options)),
    edit: (message: Message, content: string, mentions: string[] = []) =>
      store.write(async (tx) =>
        tx.editMessage(await recordOf(tx, message), content, mentions, START),
      ),
    remove: (...removed: Message[]) =>
      store.write(async (tx) => tx.deleteMessages(await recordsOf(tx, removed), START)),
    hide: (viewer: AccountRecord, ...hidden: Message[]) =>
      store.write(async (tx) => tx.hideMessages(await recordsOf(tx, hidden), viewer.id)),
    view: (room: Room, viewer: AccountRecord) =>
      store.read((tx) => tx.conversationView(room.id, viewer.id)),
    texts: (room: Room, viewer: AccountRecord) =>
      store.read(async (tx) =>
        (await wholeHistory(tx, room, viewer)).map(({ content }) => content),
      ),
    find: async (viewer: AccountRecord, words: string[], rest: Partial<SearchQuery> = {}) => {
      const hits = await store.search({ words, viewerId: viewer.id, limit: 100, ...rest });
      const uuids = hits.map(({ uuid }) => uuid);
      return store.read(async (tx) =>
        (await tx.messageViews(uuids, viewer.id)).map(({ content }) => content),
      );
    },
  };
}

interface Room {
  id: number;
  uuid: string;
}

/** One after another: a unit's calls are not made side by side. */
async function inTurn<Item, Result>(
  items: readonly Item[],
  work: (item: Item, place: number) => Promise<Result> | Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [place, item] of items.entries()) results.push(await work(item, place));
  return results;
}

/** Lets others have their turn of the event loop. */
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

const times = (count: number) => Array.from({ length: count }, (_, place) => place);

async function newAccount(
  tx: WriteTx,
  account: Partial<NewAccount> & { username: string },
): Promise<AccountRecord> {
  const { username } = account;
  const made = await tx.insertAccount({
    kind: "human",
    display_name: username,
    at: START,
    ...account,
  });
  if (!made) throw new Error(`${username} is taken`);
  return made;
}

const newAgent = (tx: WriteTx, owner: AccountRecord, provider: string) =>
  newAccount(tx, {
    username: `${owner.username}:${provider}`,
    kind: "agent",
    owner_id: owner.id,
    provider,
  });

async function newGroup(
  tx: WriteTx,
  members: readonly AccountRecord[],
  { title = null as string | null, at = START } = {},
): Promise<Room> {
  const uuid = Bun.randomUUIDv7();
  const [creator] = members as [AccountRecord];
  const id = await tx.insertConversation({
    uuid,
    kind: "group",
    title,
    created_by: creator.id,
    at,
  });
  await tx.insertMembers(
    id,
    members.map((member) => member.id),
    at,
  );
  return { id, uuid };
}

async function conversationOf(tx: ReadTx, { uuid }: Room): Promise<ConversationRecord> {
  const found = await tx.conversation(uuid, NOBODY);
  if (!found) throw new Error("the conversation is missing");
  return found;
}

/** Sends as the service does: what is stored is announced. */
async function send(
  tx: WriteTx,
  room: Room,
  sender: AccountRecord,
  content: string,
  options: SendOptions = {},
): Promise<Message> {
  const message = await trySend(tx, room, sender, content, options);
  if (!message) throw new Error("the message was not inserted");
  return message;
}

async function trySend(
  tx: WriteTx,
  room: Room,
  sender: AccountRecord,
  content: string,
  options: SendOptions = {},
): Promise<Message | null> {
  const conversation = await conversationOf(tx, room);
  const message = await tx.insertMessage({
    conversation,
    sender,
    content,
    client_msg_id: null,
    reply_to_id: null,
    mentions: [],
    at: START,
    ...options,
  });
  if (message) {
    const at = { conversation_id: room.uuid, seq: message.seq };
    const frame = { method: "events.messageNew", params: message, at } as const;
    tx.emit({ frame, to: { conversation: room.uuid } });
  }
  return message;
}

async function recordOf(tx: ReadTx, { id }: Pick<Message, "id">): Promise<MessageRecord> {
  const found = await tx.message(id);
  if (!found) throw new Error("the message is missing");
  return found;
}

const recordsOf = (tx: ReadTx, wanted: readonly Pick<Message, "id">[]) =>
  inTurn(wanted, (message) => recordOf(tx, message));

async function wholeHistory(tx: ReadTx, room: Room, viewer: AccountRecord): Promise<Message[]> {
  const query = { conversationId: room.id, viewerId: viewer.id, limit: 10_000 };
  return (await tx.history(query)).items;
}

/** What was announced of new messages in a room, by their places in it. */
const placesHeard = (announced: readonly Announcement[], { uuid }: Room) =>
  announced.flatMap((one) =>
    "frame" in one && one.frame.at?.conversation_id === uuid ? [one.frame.at.seq] : [],
  );

const tellEnd = (tx: WriteTx, marker: string) => tx.emit({ endedSession: marker });
const failed = (work: Promise<unknown>) => work.then(() => false).catch(() => true);
const spoil = () => {
  throw new Error("spoiled");
};

function unitsOfWork(check: Check) {
  check("a unit's result is what write and read resolve with", async (world) => {
    expect(await world.store.write(() => 1)).toBe(1);
    expect(await world.store.write(async () => "later")).toBe("later");
    expect(await world.store.read(() => 2)).toBe(2);
  });

  check("what a unit throws is what write and read reject with", async (world) => {
    const error = new Error("mine");
    const fail = () => {
      throw error;
    };
    const outcome = (work: Promise<unknown>) => work.catch((reason) => ({ reason }));
    expect(await outcome(world.store.write(fail))).toEqual({ reason: error });
    expect(await outcome(world.store.write(() => Promise.reject(error)))).toEqual({
      reason: error,
    });
    expect(await outcome(world.store.read(fail))).toEqual({ reason: error });
  });

  check("a unit that throws after writing leaves nothing behind", async (world) => {
    const { store } = world;
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice);
    const message = await world.send(room, alice, "first");
    const before = await world.view(room, alice);
    const write = store.write(async (tx) => {
      await newAccount(tx, { username: "carol" });
      await tx.setDisplayName(alice.id, "Somebody else");
      await tx.insertMembers(room.id, [bob.id], START);
      await send(tx, room, alice, "second");
      await tx.editMessage(await recordOf(tx, message), "changed", [], START);
      await tx.addReaction(await recordOf(tx, message), { reactor: bob, emoji: "👍", at: START });
      await tx.hideMessages([await recordOf(tx, message)], alice.id);
      await newGroup(tx, [bob]);
      spoil();
    });
    expect(await failed(write)).toBe(true);
    expect(await world.view(room, alice)).toEqual(before);
    expect(await world.texts(room, alice)).toEqual(["first"]);
    expect(await store.read((tx) => tx.account("carol"))).toBeNull();
    expect(await store.read((tx) => tx.counters(bob.id))).toEqual([]);
    expect(await world.find(alice, ["second"])).toEqual([]);
  });

  check("a unit that throws does not disturb those that run beside it", async (world) => {
    const [alice] = await world.people("alice");
    const room = await world.group(alice);
    const outcomes = await Promise.all(
      times(60).map((n) =>
        failed(
          world.store.write(async (tx) => {
            if (n % 5 === 1) spoil();
            await send(tx, room, alice, `${n}`);
            if (n % 5 === 3) spoil();
          }),
        ),
      ),
    );
    const kept = times(60).filter((n) => n % 5 !== 1 && n % 5 !== 3);
    expect(outcomes).toEqual(times(60).map((n) => !kept.includes(n)));
    const texts = await world.texts(room, alice);
    expect(texts.toSorted()).toEqual(kept.map(String).toSorted());
    expect((await world.view(room, alice)).seq).toBe(kept.length);
  });

  check("what a failed unit announced is never handed on", async (world) => {
    const [alice] = await world.people("alice");
    const room = await world.group(alice);
    const writes = times(20).map((n) =>
      world.store.write(async (tx) => {
        tellEnd(tx, `before ${n}`);
        if (n % 2) await send(tx, room, alice, `${n}`);
        if (n % 4) spoil();
      }),
    );
    await Promise.allSettled(writes);
    await world.store.write((tx) => tellEnd(tx, "last"));
    await world.heard("last");
    const ended = times(20).filter((n) => n % 4 === 0);
    expect(world.announced).toEqual(
      [...ended.map((n) => `before ${n}`), "last"].map((endedSession) => ({ endedSession })),
    );
  });

  check("a unit sees its own changes, and nobody ever sees half of them", async ({ store }) => {
    const names = times(20).map((n) => `user${n}`);
    let done = false;
    const write = store
      .write((tx) =>
        inTurn(names, async (username) => {
          await newAccount(tx, { username });
          expect(await tx.account(username)).not.toBeNull();
        }),
      )
      .finally(() => {
        done = true;
      });
    const seen = new Set<number>();
    while (!done) {
      seen.add((await store.read((tx) => tx.accounts(names))).length);
      await nextTurn();
    }
    await write;
    expect(seen.difference(new Set([0, 20]))).toEqual(new Set());
    expect(await store.read((tx) => tx.accounts(names))).toHaveLength(20);
  });

  check("reads see every unit whose write has resolved", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    for (const n of times(25)) {
      await world.send(room, alice, `${n}`);
      const { seq, unread_count, last_message } = await world.view(room, bob);
      expect([seq, unread_count, last_message?.content]).toEqual([n + 1, n + 1, `${n}`]);
    }
  });

  check("a store that is open is ready", async (world) => {
    await world.store.ready();
  });
}

function order(check: Check) {
  check(
    "counters have no gaps, and announcements come in their order, under hundreds of units at once",
    async (world) => {
      const people = await world.people("alice", "bob", "carol");
      const rooms = await inTurn(people, () => world.group(...people));
      const sent = await Promise.all(
        times(400).map((n) =>
          world.store
            .write(async (tx) => {
              const message = await send(tx, at(rooms, n), at(people, n >> 2), `${n}`);
              if (n % 11 === 0) spoil();
              return message;
            })
            .catch(() => null),
        ),
      );
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      for (const room of rooms) {
        const mine = sent.filter((message) => message?.conversation_id === room.uuid);
        const places = mine.map((message) => (message as Message).seq);
        const all = times(mine.length).map((n) => n + 1);
        expect(places.toSorted((one, other) => one - other)).toEqual(all);
        expect(placesHeard(world.announced, room)).toEqual(all);
        const shown = await world.store.read((tx) => wholeHistory(tx, room, at(people, 0)));
        expect(shown.map(({ seq }) => seq)).toEqual(all);
      }
    },
  );

  check(
    "one unit's announcements stay together, in the order in which it made them",
    async (world) => {
      await Promise.all(
        times(50).map((n) =>
          world.store.write(async (tx) => {
            tellEnd(tx, `${n} begins`);
            await newAccount(tx, { username: `user${n}` });
            tellEnd(tx, `${n} ends`);
          }),
        ),
      );
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      const told = world.announced.map((one) => ("endedSession" in one ? one.endedSession : ""));
      expect(told).toHaveLength(101);
      for (const n of times(50)) {
        expect(told.indexOf(`${n} ends`)).toBe(told.indexOf(`${n} begins`) + 1);
      }
    },
  );

  check("what is announced can be read", async ({ store }) => {
    const found: Promise<unknown>[] = [];
    store.onCommit((announcements) => {
      for (const one of announcements) {
        if ("endedSession" in one) found.push(store.read((tx) => tx.account(one.endedSession)));
      }
    });
    await Promise.all(
      times(50).map((n) =>
        store.write(async (tx) => {
          await newAccount(tx, { username: `user${n}` });
          tellEnd(tx, `user${n}`);
        }),
      ),
    );
    while (found.length < 50) await store.write(() => {});
    for (const account of await Promise.all(found)) expect(account).not.toBeNull();
  });
}

function accounts(check: Check) {
  check("an account is found by its username, with what only the server knows", async (world) => {
    const { store } = world;
    const [alice] = await world.people("alice");
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    expect(alice).toEqual({
      id: expect.any(Number),
      username: "alice",
      kind: "human",
      display_name: "alice",
      owner_id: null,
      provider: null,
    });
    expect(agent).toMatchObject({ kind: "agent", owner_id: alice.id, provider: "claude" });
    expect(await store.read((tx) => tx.account("alice"))).toEqual(alice);
    expect(await store.read((tx) => tx.account("alice:claude"))).toEqual(agent);
    expect(await store.read((tx) => tx.account("Alice"))).toBeNull();
    expect(await store.read((tx) => tx.account("nobody"))).toBeNull();
  });

  check("a username is given once, also to those who ask at the same time", async (world) => {
    const asked = times(10).map(() =>
      world.store.write((tx) =>
        tx.insertAccount({ username: "alice", kind: "human", display_name: "A", at: START }),
      ),
    );
    const made = (await Promise.all(asked)).filter((account) => account !== null);
    expect(made).toHaveLength(1);
    expect(await world.store.read((tx) => tx.account("alice"))).toEqual(made[0] ?? null);
  });

  check("several accounts are found at once, without those that do not exist", async (world) => {
    const made = await world.people("alice", "bob", "carol");
    const found = await world.store.read((tx) => tx.accounts(["carol", "nobody", "alice"]));
    expect(byName(found)).toEqual([at(made, 0), at(made, 2)]);
    expect(await world.store.read((tx) => tx.accounts([]))).toEqual([]);
  });

  check("credentials carry the password's hash, and null where there is none", async (world) => {
    const { store } = world;
    const account = await store.write((tx) =>
      newAccount(tx, { username: "alice", password_hash: "hash" }),
    );
    const agent = await store.write((tx) => newAgent(tx, account, "gpt"));
    const credentials = (username: string) => store.read((tx) => tx.credentials(username));
    expect(await credentials("alice")).toEqual({ account, password_hash: "hash" });
    expect(await credentials("alice:gpt")).toEqual({ account: agent, password_hash: null });
    expect(await credentials("nobody")).toBeNull();
  });

  check("a new display name is shown everywhere", async (world) => {
    const [alice] = await world.people("alice");
    const room = await world.group(alice);
    await world.send(room, alice, "hello");
    await world.store.write((tx) => tx.setDisplayName(alice.id, "Älice 👋"));
    const view = await world.view(room, alice);
    const shown = [view.created_by, at(view.participants, 0), view.last_message?.sender];
    expect(shown.map((account) => account?.display_name)).toEqual(times(3).map(() => "Älice 👋"));
  });

  /** People whose names begin alike, and agents of two of them. */
  async function crowd(world: World) {
    const names = ["al_b", "al1", "alb", "bea", "zoe", "al"];
    const made = await world.people(...names);
    const [zoe, bea] = [at(made, 4), at(made, 3)];
    await world.store.write(async (tx) => {
      await newAgent(tx, zoe, "claude");
      await newAgent(tx, bea, "claude");
      await tx.setDisplayName(zoe.id, "Zoë van Alphen");
      await tx.setDisplayName(bea.id, "100% Bea");
    });
    return { zoe, bea };
  }
  const listed = async (world: World, query: Parameters<ReadTx["listAccounts"]>[0]) =>
    (await world.store.read((tx) => tx.listAccounts(query))).map(({ username }) => username);

  check("the list has all humans and one's own agents, by username", async (world) => {
    const { zoe } = await crowd(world);
    const names = ["al", "al1", "al_b", "alb", "bea", "zoe", "zoe:claude"];
    expect(await listed(world, { viewerId: zoe.id, limit: 100 })).toEqual(names);
  });

  check("the list read page by page is the whole list", async (world) => {
    const { zoe } = await crowd(world);
    const whole = await listed(world, { viewerId: zoe.id, limit: 100 });
    const pages: string[] = [];
    for (let page = [""]; page.length > 0; ) {
      page = await listed(world, { viewerId: zoe.id, after: pages.at(-1), limit: 2 });
      pages.push(...page);
    }
    expect(pages).toEqual(whole);
  });

  check(
    "the list can be asked for the beginning of a username or of a word of the name",
    async (world) => {
      const { zoe } = await crowd(world);
      const query = (text: string) => listed(world, { viewerId: zoe.id, query: text, limit: 100 });
      expect(await query("al")).toEqual(["al", "al1", "al_b", "alb", "zoe"]);
      expect(await query("ALP")).toEqual(["zoe"]);
      expect(await query("phen")).toEqual([]);
      expect(await query("zoe:")).toEqual(["zoe:claude"]);
      expect(await query("al_")).toEqual(["al_b"]);
      expect(await query("100%")).toEqual(["bea"]);
      expect(await query("%")).toEqual([]);
      expect(await query("\\")).toEqual([]);
      expect(await query("")).toHaveLength(7);
    },
  );

  check("the list can be asked for certain usernames", async (world) => {
    const { zoe } = await crowd(world);
    const usernames = ["zoe:claude", "bea:claude", "nobody", "al", "al"];
    expect(await listed(world, { viewerId: zoe.id, usernames, limit: 100 })).toEqual([
      "al",
      "zoe:claude",
    ]);
    expect(await listed(world, { viewerId: zoe.id, usernames, after: "al", limit: 1 })).toEqual([
      "zoe:claude",
    ]);
    expect(await listed(world, { viewerId: zoe.id, usernames: [], limit: 100 })).toEqual([]);
  });
}

function sessions(check: Check) {
  const HOUR = 3_600_000;
  async function signedIn(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const ids = times(3).map(() => Bun.randomUUIDv7());
    await world.store.write((tx) =>
      inTurn(ids, (id, n) =>
        tx.insertSession({
          id,
          token_hash: `hash ${n}`,
          account_id: alice.id,
          user_agent: n === 0 ? null : `browser ${n}`,
          at: START + n,
          expires_at: START + HOUR,
        }),
      ),
    );
    const list = async (account = alice, now = START) =>
      (await world.store.read((tx) => tx.sessions(account.id, now))).map(({ id }) =>
        ids.indexOf(id),
      );
    const find = (hash: string) => world.store.read((tx) => tx.session(hash));
    return { alice, bob, ids, list, find };
  }

  check("a session is found by its token's hash, with its account", async (world) => {
    const { alice, ids, find } = await signedIn(world);
    expect(await find("hash 1")).toEqual({
      id: at(ids, 1),
      account: alice,
      last_used_at: START + 1,
      expires_at: START + HOUR,
      ended_at: null,
    });
    expect(await find("hash 9")).toBeNull();
  });

  check("those that still work are listed, the most recently used first", async (world) => {
    const { alice, bob, ids, list } = await signedIn(world);
    expect(await list()).toEqual([2, 1, 0]);
    expect(await list(bob)).toEqual([]);
    await world.store.write((tx) => tx.touchSession(at(ids, 0), START + 50, START + 2 * HOUR));
    expect(await list()).toEqual([0, 2, 1]);
    expect(await list(alice, START + HOUR)).toEqual([0]);
    expect(await list(alice, START + 2 * HOUR)).toEqual([]);
    const [first] = await world.store.read((tx) => tx.sessions(alice.id, START));
    expect(first).toEqual({
      id: at(ids, 0),
      created_at: new Date(START).toISOString(),
      last_used_at: new Date(START + 50).toISOString(),
      user_agent: null,
    });
  });

  check("using one moves its end", async (world) => {
    const { ids, find } = await signedIn(world);
    await world.store.write((tx) => tx.touchSession(at(ids, 1), START + 7, START + 9 * HOUR));
    expect(await find("hash 1")).toMatchObject({
      last_used_at: START + 7,
      expires_at: START + 9 * HOUR,
    });
  });

  check("one can be ended once, by its own account", async (world) => {
    const { alice, bob, ids, list, find } = await signedIn(world);
    const end = (account: AccountRecord, id: string) =>
      world.store.write((tx) => tx.endSession(id, account.id, START + 5));
    expect(await end(bob, at(ids, 1))).toBe(false);
    expect(await find("hash 1")).toMatchObject({ ended_at: null });
    expect(await end(alice, at(ids, 1))).toBe(true);
    expect(await find("hash 1")).toMatchObject({ ended_at: START + 5 });
    expect(await end(alice, at(ids, 1))).toBe(false);
    expect(await end(alice, Bun.randomUUIDv7())).toBe(false);
    expect(await list()).toEqual([2, 0]);
  });

  check("a token that is remembered twice at the same time has one session", async (world) => {
    const { alice, find } = await signedIn(world);
    const session = { token_hash: "same", account_id: alice.id, user_agent: null, at: START };
    const ids = times(2).map(() => Bun.randomUUIDv7());
    await Promise.all(
      ids.map((id) =>
        world.store.write((tx) => tx.insertSession({ ...session, id, expires_at: START + HOUR })),
      ),
    );
    expect(ids).toContain((await find("same"))?.id as string);
    expect(await world.store.read((tx) => tx.sessions(alice.id, START))).toHaveLength(4);
  });
}

function conversations(check: Check) {
  const trio = (world: World) => world.people("alice", "bob", "carol");

  check("a new group is as its creator made it", async (world) => {
    const [alice, bob] = await trio(world);
    const room = await world.store.write((tx) => newGroup(tx, [alice, bob], { title: "Team" }));
    const shared: SharedConversation = {
      id: room.uuid,
      kind: "group",
      title: "Team",
      participants: [shown(alice), shown(bob)],
      created_by: shown(alice),
      admin: "alice",
      created_at: new Date(START).toISOString(),
      updated_at: new Date(START).toISOString(),
      seq: 0,
      last_message: null,
      participant_count: 2,
    };
    const own = { unread_count: 0, unread: { human: 0, agent: 0, mentions: 0 }, last_read_seq: 0 };
    const { store } = world;
    expect(await store.read((tx) => tx.sharedConversation(room.id))).toEqual(shared);
    expect(await world.view(room, bob)).toEqual({ ...shared, ...own });
    expect(await store.read((tx) => tx.conversationDetail(room.id, bob.id))).toEqual({
      ...shared,
      ...own,
      reads: { alice: 0, bob: 0 },
    });
  });

  check("its record tells whether an account takes part", async (world) => {
    const [alice, bob] = await trio(world);
    const room = await world.group(alice);
    const find = (uuid: string, viewer: AccountRecord) =>
      world.store.read((tx) => tx.conversation(uuid, viewer.id));
    const record = {
      ...room,
      kind: "group",
      title: null,
      admin_id: alice.id,
      seq: 0,
      participant_count: 1,
      agent_count: 0,
    } as const;
    expect(await find(room.uuid, alice)).toEqual({ ...record, joined: true });
    expect(await find(room.uuid, bob)).toEqual({ ...record, joined: false });
    expect(await find(Bun.randomUUIDv7(), alice)).toBeNull();
  });

  check(
    "a direct conversation has no admin and is found by its two, in either order",
    async (world) => {
      const [alice, bob, carol] = await trio(world);
      const { store } = world;
      const uuid = Bun.randomUUIDv7();
      const id = await store.write(async (tx) => {
        const direct = [bob.id, alice.id] as const;
        const made = { uuid, kind: "direct", title: null, created_by: bob.id, direct } as const;
        return tx.insertConversation({ ...made, at: START });
      });
      const find = (...pair: [AccountRecord, AccountRecord]) =>
        store.read((tx) => tx.directConversation([pair[0].id, pair[1].id]));
      expect(await find(alice, bob)).toBe(id);
      expect(await find(bob, alice)).toBe(id);
      expect(await find(alice, carol)).toBeNull();
      expect(await find(alice, alice)).toBeNull();
      expect(await store.read((tx) => tx.conversation(uuid, bob.id))).toMatchObject({
        kind: "direct",
        admin_id: null,
      });
    },
  );

  check(
    "there is one direct conversation for each pair, also when both start it at once",
    async (world) => {
      const [alice, bob] = await trio(world);
      const start = (by: AccountRecord, other: AccountRecord) =>
        world.store.write(async (tx) => {
          const direct = [by.id, other.id] as const;
          const existing = await tx.directConversation(direct);
          if (existing !== null) return existing;
          const made = {
            kind: "direct",
            title: null,
            created_by: by.id,
            direct,
            at: START,
          } as const;
          return tx.insertConversation({ uuid: Bun.randomUUIDv7(), ...made });
        });
      const ids = await Promise.all(
        times(10).flatMap(() => [start(alice, bob), start(bob, alice)]),
      );
      expect(new Set(ids).size).toBe(1);
    },
  );

  check("members come in the order in which they joined", async (world) => {
    const [alice, bob, carol] = await trio(world);
    const { store } = world;
    const room = await world.group(carol, alice);
    await store.write(async (tx) => {
      await tx.insertMembers(room.id, [bob.id], START);
      await tx.deleteMembers(room.id, [carol.id]);
      await tx.insertMembers(room.id, [carol.id], START);
    });
    expect(await store.read((tx) => tx.members(room.id))).toEqual(
      [alice, bob, carol].map((account) => ({ account, always_on: false, last_read_seq: 0 })),
    );
    const { participants, participant_count } = await world.view(room, bob);
    expect(participants.map(({ username }) => username)).toEqual(["alice", "bob", "carol"]);
    expect(participant_count).toBe(3);
  });

  check("those named who take part are told apart from others", async (world) => {
    const [alice, bob] = await trio(world);
    const room = await world.group(alice, bob);
    const among = (names: string[]) =>
      world.store.read((tx) => tx.participantsAmong(room.id, names));
    expect((await among(["nobody", "carol", "bob", "alice"])).toSorted()).toEqual(["alice", "bob"]);
    expect(await among([])).toEqual([]);
  });

  check("lists show fifty of many participants, and the detail all of them", async (world) => {
    const people = await world.people(...times(55).map((n) => `user${String(n).padStart(2, "0")}`));
    const room = await world.group(...people);
    const [first] = people as [AccountRecord];
    const { store } = world;
    const shown = people.map(({ username }) => username);
    const names = ({ participants }: Pick<Conversation, "participants">) =>
      participants.map(({ username }) => username);
    const view = await world.view(room, first);
    expect([names(view), view.participant_count]).toEqual([shown.slice(0, 50), 55]);
    const shared = await store.read((tx) => tx.sharedConversation(room.id));
    expect(names(shared)).toEqual(shown.slice(0, 50));
    const detail = await store.read((tx) => tx.conversationDetail(room.id, first.id));
    expect([names(detail), Object.keys(detail.reads)]).toEqual([shown, shown]);
  });

  check("the detail tells how far each human has read", async (world) => {
    const [alice, bob] = await trio(world);
    const { store } = world;
    const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
    const room = await world.group(alice, bob, agent);
    for (const sender of [alice, bob, agent, alice]) await world.send(room, sender, "hello");
    const { reads } = await store.read((tx) => tx.conversationDetail(room.id, bob.id));
    expect(reads).toEqual({ alice: 4, bob: 2 });
  });

  check(
    "a change of the group itself takes the counter one up and makes it the latest",
    async (world) => {
      const [alice, bob] = await trio(world);
      const room = await world.group(alice, bob);
      const seq = await world.store.write(async (tx) => {
        await tx.setTitle(room.id, "New name");
        await tx.setAdmin(room.id, bob.id);
        return tx.advance(room.id, START + 60_000);
      });
      expect(seq).toBe(1);
      expect(await world.view(room, alice)).toMatchObject({
        title: "New name",
        admin: "bob",
        seq: 1,
        updated_at: new Date(START + 60_000).toISOString(),
      });
      await world.store.write((tx) => tx.setAdmin(room.id, null));
      expect((await world.view(room, alice)).admin).toBeNull();
    },
  );

  check(
    "messages make a conversation the latest, while edits, reactions and deletions do not",
    async (world) => {
      const [alice] = await trio(world);
      const room = await world.group(alice);
      const message = await world.send(room, alice, "hello", { at: START + 1000 });
      const updated = async () => Date.parse((await world.view(room, alice)).updated_at) - START;
      expect(await updated()).toBe(1000);
      await world.store.write(async (tx) => {
        const record = await recordOf(tx, message);
        await tx.editMessage(record, "changed", [], START + 2000);
        await tx.addReaction(record, { reactor: alice, emoji: "👍", at: START + 3000 });
        await tx.deleteMessages([record], START + 4000);
      });
      expect(await updated()).toBe(1000);
    },
  );

  check("an account's counters are those of the conversations it takes part in", async (world) => {
    const [alice, bob] = await trio(world);
    const [one, two] = [await world.group(alice, bob), await world.group(bob)];
    await world.send(one, alice, "hello");
    const counters = async (account: AccountRecord) =>
      new Map(
        (await world.store.read((tx) => tx.counters(account.id))).map(({ uuid, seq }) => [
          uuid,
          seq,
        ]),
      );
    expect(await counters(alice)).toEqual(new Map([[one.uuid, 1]]));
    expect(await counters(bob)).toEqual(
      new Map([
        [one.uuid, 1],
        [two.uuid, 0],
      ]),
    );
    await world.store.write((tx) => tx.deleteMembers(one.id, [bob.id]));
    expect(await counters(bob)).toEqual(new Map([[two.uuid, 0]]));
  });

  check(
    "the list has the latest first and, page by page, every conversation once",
    async (world) => {
      const [alice, bob] = await trio(world);
      const { store } = world;
      const rooms = await store.write((tx) =>
        inTurn(times(9), (n) =>
          newGroup(tx, n === 4 ? [bob] : [alice, bob], { at: START + (n >> 1) }),
        ),
      );
      await world.send(at(rooms, 1), bob, "hello", { at: START + 100 });
      const page = (after?: { updated_at: number; id: number }, limit = 100) =>
        store.read((tx) => tx.chats({ viewerId: alice.id, after, limit }));
      const place = (uuid: string) => rooms.findIndex((room) => room.uuid === uuid);
      const whole = (await page()).map(({ id }) => place(id));
      expect(whole).toEqual([1, 8, 7, 6, 5, 3, 2, 0]);
      const paged: number[] = [];
      for (let after: { updated_at: number; id: number } | undefined; ; ) {
        const found = await page(after, 3);
        paged.push(...found.map(({ id }) => place(id)));
        const end = found.at(-1);
        if (!end) break;
        after = { updated_at: Date.parse(end.updated_at), id: at(rooms, place(end.id)).id };
      }
      expect(paged).toEqual(whole);
      const [latest] = await page();
      expect(latest).toEqual(await world.view(at(rooms, 1), alice));
    },
  );
}

function messages(check: Check) {
  async function pair(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    return { alice, bob, room: await world.group(alice, bob) };
  }

  check("a message is returned as it is read later", async (world) => {
    const { alice, bob, room } = await pair(world);
    const first = await world.send(room, bob, "first");
    const sent = await world.send(room, alice, "Grüße\n👍 @bob", {
      client_msg_id: "mine",
      reply_to_id: first.id,
      mentions: ["bob"],
      at: START + 5,
    });
    expect(sent).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/),
      conversation_id: room.uuid,
      seq: 2,
      version: 2,
      sender: shown(alice),
      content: "Grüße\n👍 @bob",
      client_msg_id: "mine",
      reply_to_id: first.id,
      created_at: new Date(START + 5).toISOString(),
      edited_at: null,
      finalized_at: new Date(START + 5).toISOString(),
      reactions: [],
      mentions: ["bob"],
      turn: null,
    });
    const views = await world.store.read((tx) => tx.messageViews([sent.id], bob.id));
    expect(views).toEqual([sent]);
    expect((await world.view(room, bob)).last_message).toEqual(sent);
  });

  check("its record is for the server's own use", async (world) => {
    const { alice, room } = await pair(world);
    const agent = await world.store.write((tx) => newAgent(tx, alice, "claude"));
    const sent = await world.send(room, agent, "hello", { mentions: ["alice"] });
    expect(await world.store.read((tx) => recordOf(tx, sent))).toEqual({
      id: expect.any(Number),
      uuid: sent.id,
      conversation_id: room.id,
      conversation_uuid: room.uuid,
      seq: 1,
      sender_id: agent.id,
      sender_owner_id: alice.id,
      sender_kind: "agent",
      mentions: ["alice"],
      finalized: true,
      deleted: false,
    });
    expect(await world.store.read((tx) => tx.message(Bun.randomUUIDv7()))).toBeNull();
  });

  check(
    "several are shown in the order asked for, without those that do not exist",
    async (world) => {
      const { alice, room } = await pair(world);
      const sent = await inTurn(times(12), (n) => world.send(room, alice, `${n}`));
      const asked = [11, 3, 7, 0, 10].map((n) => at(sent, n).id);
      const shown = await world.store.read((tx) =>
        tx.messageViews([...asked, Bun.randomUUIDv7()], alice.id),
      );
      expect(shown.map(({ id }) => id)).toEqual(asked);
    },
  );

  check(
    "one client_msg_id makes one message, and a second changes nothing at all",
    async (world) => {
      const { alice, bob, room } = await pair(world);
      const first = await world.send(room, alice, "first", { client_msg_id: "same" });
      await world.send(room, bob, "between");
      const before = await Promise.all([world.view(room, alice), world.view(room, bob)]);
      const again = await world.store.write((tx) =>
        trySend(tx, room, alice, "second", { client_msg_id: "same", mentions: ["bob"] }),
      );
      expect(again).toBeNull();
      expect(await Promise.all([world.view(room, alice), world.view(room, bob)])).toEqual(before);
      const earlier = await world.store.read((tx) => tx.sentBefore(room.id, alice.id, "same"));
      expect(earlier).toBe(first.id);
    },
  );

  check(
    "the same client_msg_id is another's in another conversation or from another sender",
    async (world) => {
      const { alice, bob, room } = await pair(world);
      const other = await world.group(alice, bob);
      const options = { client_msg_id: "same" };
      const ids = [
        await world.send(room, alice, "1", options),
        await world.send(room, bob, "2", options),
        await world.send(other, alice, "3", options),
      ].map(({ id }) => id);
      expect(new Set(ids).size).toBe(3);
      const sentBefore = (id: string) =>
        world.store.read((tx) => tx.sentBefore(room.id, bob.id, id));
      expect(await sentBefore("same")).toBe(at(ids, 1));
      expect(await sentBefore("other")).toBeNull();
    },
  );

  check("messages without a client_msg_id are never taken for each other", async (world) => {
    const { alice, room } = await pair(world);
    for (const _ of times(3)) await world.send(room, alice, "same");
    expect(await world.texts(room, alice)).toEqual(["same", "same", "same"]);
  });

  check(
    "one client_msg_id sent many times at once makes and announces one message",
    async (world) => {
      const { alice, room } = await pair(world);
      const sent = await Promise.all(
        times(50).map((n) =>
          world.store.write((tx) => trySend(tx, room, alice, `${n}`, { client_msg_id: "same" })),
        ),
      );
      expect(sent.filter((message) => message !== null)).toHaveLength(1);
      expect((await world.view(room, alice)).seq).toBe(1);
      await world.store.write((tx) => tellEnd(tx, "all"));
      await world.heard("all");
      expect(placesHeard(world.announced, room)).toEqual([1]);
    },
  );

  check("a client_msg_id stays used after its message is deleted", async (world) => {
    const { alice, room } = await pair(world);
    const first = await world.send(room, alice, "first", { client_msg_id: "same" });
    await world.remove(first);
    expect(
      await world.store.write((tx) =>
        trySend(tx, room, alice, "second", { client_msg_id: "same" }),
      ),
    ).toBeNull();
    const earlier = await world.store.read((tx) => tx.sentBefore(room.id, alice.id, "same"));
    expect(earlier).toBe(first.id);
  });

  check("an edit changes text and mentions, and keeps the place", async (world) => {
    const { alice, bob, room } = await pair(world);
    const first = await world.send(room, alice, "first", { mentions: ["alice"] });
    await world.send(room, bob, "second");
    const version = await world.store.write(async (tx) =>
      tx.editMessage(await recordOf(tx, first), "changed", ["bob"], START + 9),
    );
    expect(version).toBe(3);
    const [view] = await world.store.read((tx) => tx.messageViews([first.id], bob.id));
    expect(view).toEqual({
      ...first,
      version: 3,
      content: "changed",
      mentions: ["bob"],
      edited_at: new Date(START + 9).toISOString(),
    });
    expect(await world.texts(room, bob)).toEqual(["changed", "second"]);
  });
}

function hidingAndDeleting(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await inTurn(times(4), (n) => world.send(room, alice, `${n}`));
    return { alice, bob, room, sent };
  }

  check("deleting several is one change, and they are gone for everyone", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    expect(await world.remove(at(sent, 1), at(sent, 3))).toBe(5);
    for (const viewer of [alice, bob]) {
      const view = await world.view(room, viewer);
      expect([view.seq, view.last_message?.content]).toEqual([5, "2"]);
      expect(await world.texts(room, viewer)).toEqual(["0", "2"]);
      const ids = sent.map(({ id }) => id);
      const shown = await world.store.read((tx) => tx.messageViews(ids, viewer.id));
      expect(shown.map(({ content }) => content)).toEqual(["0", "2"]);
    }
    expect(await world.store.read((tx) => recordOf(tx, at(sent, 1)))).toMatchObject({
      deleted: true,
      seq: 2,
    });
  });

  check("hiding is private to one account, and the counter stays", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 0), at(sent, 3));
    expect(await world.texts(room, bob)).toEqual(["1", "2"]);
    expect(await world.texts(room, alice)).toEqual(["0", "1", "2", "3"]);
    const [hers, his] = [await world.view(room, alice), await world.view(room, bob)];
    expect([hers.seq, hers.last_message?.content]).toEqual([4, "3"]);
    expect([his.seq, his.last_message?.content]).toEqual([4, "2"]);
    const hidden = await world.store.read(async (tx) => {
      const record = await recordOf(tx, at(sent, 0));
      return [await tx.isHidden(record, bob.id), await tx.isHidden(record, alice.id)];
    });
    expect(hidden).toEqual([true, false]);
  });

  check("hiding twice is hiding once", async (world) => {
    const { bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 0));
    const before = await world.view(room, bob);
    await world.hide(bob, at(sent, 0));
    expect(await world.view(room, bob)).toEqual(before);
  });

  check("what was hidden stays so for somebody who leaves and comes back", async (world) => {
    const { bob, room, sent } = await talk(world);
    await world.hide(bob, at(sent, 2));
    await world.store.write(async (tx) => {
      await tx.deleteMembers(room.id, [bob.id]);
      await tx.insertMembers(room.id, [bob.id], START);
    });
    expect(await world.texts(room, bob)).toEqual(["0", "1", "3"]);
  });

  check("the last message is null when none is left to see", async (world) => {
    const { alice, bob, room, sent } = await talk(world);
    await world.hide(bob, ...sent);
    expect((await world.view(room, bob)).last_message).toBeNull();
    await world.remove(...sent);
    expect((await world.view(room, alice)).last_message).toBeNull();
    expect(
      (await world.store.read((tx) => tx.sharedConversation(room.id))).last_message,
    ).toBeNull();
  });
}

function reactions(check: Check) {
  async function talk(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const message = await world.send(room, alice, "hello");
    const react = (reactor: AccountRecord, emoji: string) =>
      world.store.write(async (tx) =>
        tx.addReaction(await recordOf(tx, message), { reactor, emoji, at: START + 3 }),
      );
    const unreact = (reactor: AccountRecord, emoji: string) =>
      world.store.write(async (tx) =>
        tx.removeReaction(await recordOf(tx, message), reactor.id, emoji),
      );
    const shown = async (viewer: { id: number }) => {
      const [view] = await world.store.read((tx) => tx.messageViews([message.id], viewer.id));
      return view;
    };
    return { alice, bob, message, react, unreact, shown };
  }

  check("each takes the counter one up and changes the message's version", async (world) => {
    const { alice, bob, react, unreact, shown } = await talk(world);
    expect(await react(alice, "👍")).toBe(2);
    expect(await react(bob, "👍")).toBe(3);
    expect((await shown(bob))?.version).toBe(3);
    expect(await unreact(alice, "👍")).toBe(4);
    expect(await shown(bob)).toMatchObject({ version: 4, edited_at: null });
  });

  check(
    "they are summed up by emoji, in the order of the first, with one's own marked",
    async (world) => {
      const { alice, bob, react, unreact, shown } = await talk(world);
      await react(bob, "🎉");
      await react(alice, "👍🏽");
      await react(bob, "👍🏽");
      await react(alice, "👍");
      const summary = async (viewer: { id: number }) =>
        (await shown(viewer))?.reactions.map(({ emoji, count, reacted }) => [
          emoji,
          count,
          reacted,
        ]);
      expect(await summary(alice)).toEqual([
        ["🎉", 1, false],
        ["👍🏽", 2, true],
        ["👍", 1, true],
      ]);
      expect(await summary({ id: NOBODY })).toEqual([
        ["🎉", 1, false],
        ["👍🏽", 2, false],
        ["👍", 1, false],
      ]);
      await unreact(alice, "👍🏽");
      await unreact(bob, "🎉");
      expect(await summary(alice)).toEqual([
        ["👍🏽", 1, false],
        ["👍", 1, true],
      ]);
    },
  );

  check("one is found by its reactor and emoji until it is taken back", async (world) => {
    const { alice, bob, message, react, unreact } = await talk(world);
    const find = (reactor: AccountRecord, emoji: string) =>
      world.store.read(async (tx) => tx.reaction(await recordOf(tx, message), reactor, emoji));
    await react(bob, "👍");
    expect(await find(bob, "👍")).toEqual({
      message_id: message.id,
      reactor: shown(bob),
      emoji: "👍",
      created_at: new Date(START + 3).toISOString(),
    });
    expect(await find(alice, "👍")).toBeNull();
    expect(await find(bob, "🎉")).toBeNull();
    await unreact(bob, "👍");
    expect(await find(bob, "👍")).toBeNull();
  });

  check("they go with their message", async (world) => {
    const { bob, message, react } = await talk(world);
    await react(bob, "👍");
    await world.remove(message);
    const found = await world.store.read(async (tx) =>
      tx.reaction(await recordOf(tx, message), bob, "👍"),
    );
    expect(found).toBeNull();
  });
}

function reading(check: Check) {
  const figures = ({ unread: { human, agent, mentions }, last_read_seq }: Conversation) => [
    human,
    agent,
    mentions,
    last_read_seq,
  ];

  check("sending reads up to the message, and others have it unread", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const agent = await world.store.write((tx) => newAgent(tx, alice, "claude"));
    const room = await world.group(alice, bob, agent);
    await world.send(room, alice, "@bob", { mentions: ["bob"] });
    await world.send(room, agent, "@alice @bob", { mentions: ["alice", "bob"] });
    expect(figures(await world.view(room, alice))).toEqual([0, 1, 1, 1]);
    expect(figures(await world.view(room, bob))).toEqual([1, 1, 2, 0]);
    await world.send(room, bob, "@bob", { mentions: ["bob"] });
    expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 3]);
    expect(figures(await world.view(room, alice))).toEqual([1, 1, 1, 1]);
  });

  check("a member's place moves forward only", async (world) => {
    const [alice, bob, carol] = await world.people("alice", "bob", "carol");
    const room = await world.group(alice, bob);
    for (const n of times(4)) await world.send(room, alice, `${n}`);
    const read = (account: AccountRecord, seq: number) =>
      world.store.write((tx) => tx.markRead(room.id, account.id, seq));
    const unread = (account: AccountRecord) =>
      world.store.read((tx) => tx.unreadCount(room.id, account.id));
    expect([await read(bob, 3), await unread(bob)]).toEqual([true, 1]);
    expect([await read(bob, 3), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 1), await unread(bob)]).toEqual([false, 1]);
    expect([await read(bob, 4), await unread(bob)]).toEqual([true, 0]);
    expect([await read(carol, 4), await unread(carol)]).toEqual([false, 0]);
  });

  check("somebody who joins has nothing unread of what was before", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice);
    for (const n of times(3)) await world.send(room, alice, `${n}`);
    await world.store.write((tx) => tx.insertMembers(room.id, [bob.id], START));
    expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 3]);
    expect(await world.texts(room, bob)).toEqual(["0", "1", "2"]);
  });

  check(
    "a mention that an edit brings to a message one has hidden is not unread",
    async (world) => {
      const [alice, bob] = await world.people("alice", "bob");
      const room = await world.group(alice, bob);
      const message = await world.send(room, alice, "hello");
      await world.hide(bob, message);
      await world.edit(message, "hello @bob", ["bob"]);
      expect(figures(await world.view(room, bob))).toEqual([0, 0, 0, 0]);
    },
  );

  check(
    "after anything that can happen the figures are those that counting gives",
    async (world) => {
      await fc.assert(
        fc.asyncProperty(script, (steps) =>
          world.store.write(async (tx) => {
            const story = await newStory(tx);
            for (const step of steps) {
              await story.take(step);
              await story.checkFigures();
            }
          }),
        ),
        { numRuns: 100 },
      );
    },
  );
}

function history(check: Check) {
  /** Thirty messages of which every third cannot be seen by the viewer. */
  async function long(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await world.store.write((tx) =>
      inTurn(times(30), (n) => send(tx, room, alice, `${n}`)),
    );
    await world.remove(...sent.filter((_, n) => n % 6 === 1));
    await world.hide(bob, ...sent.filter((_, n) => n % 6 === 4));
    const visible = sent.filter((_, n) => n % 3 !== 1).map(({ content }) => content);
    const page = async (
      limit: number,
      from?: { seq: number; direction: "older" | "newer" },
    ): Promise<{ items: Message[]; texts: string[]; has_more: boolean }> => {
      const query = { conversationId: room.id, viewerId: bob.id, from, limit };
      const { items, has_more } = await world.store.read((tx) => tx.history(query));
      return { items, texts: items.map(({ content }) => content), has_more };
    };
    return { visible, page, sent };
  }

  check("without a place it is the latest page, oldest first", async (world) => {
    const { visible, page } = await long(world);
    expect(await page(5)).toMatchObject({ texts: visible.slice(-5), has_more: true });
    expect(await page(20)).toMatchObject({ texts: visible, has_more: false });
    expect(await page(100)).toMatchObject({ texts: visible, has_more: false });
  });

  for (const direction of ["older", "newer"] as const) {
    check(
      `following the ${direction} pages to the end gives all there is to see`,
      async (world) => {
        const { visible, page } = await long(world);
        for (const limit of [1, 3, 7]) {
          const read: string[] = [];
          let seq = direction === "older" ? 31 : 0;
          for (let more = true; more; ) {
            const { items, texts, has_more } = await page(limit, { seq, direction });
            if (direction === "older") read.unshift(...texts);
            else read.push(...texts);
            more = has_more;
            seq = (direction === "older" ? items.at(0) : items.at(-1))?.seq ?? seq;
          }
          expect(read).toEqual(visible);
        }
      },
    );
  }

  check(
    "the place itself is on neither side, and may be one that cannot be seen",
    async (world) => {
      const { page, sent } = await long(world);
      const around = async (n: number) => {
        const { seq } = at(sent, n);
        const older = await page(2, { seq, direction: "older" });
        const newer = await page(2, { seq, direction: "newer" });
        return [older.texts, newer.texts];
      };
      expect(await around(9)).toEqual([
        ["6", "8"],
        ["11", "12"],
      ]);
      expect(await around(7)).toEqual([
        ["5", "6"],
        ["8", "9"],
      ]);
    },
  );

  check("a conversation without messages has an empty page", async (world) => {
    const [alice] = await world.people("alice");
    const { id: conversationId } = await world.group(alice);
    const query = { conversationId, viewerId: alice.id, limit: 5 };
    const page = await world.store.read((tx) => tx.history(query));
    expect(page).toEqual({ items: [], has_more: false });
  });
}

function updates(check: Check) {
  async function talk(world: World, count: number) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await world.store.write((tx) =>
      inTurn(times(count), (n) => send(tx, room, alice, `${n}`)),
    );
    const since = async (seq: number, limit = 100) => {
      const query = { conversationId: room.id, viewerId: bob.id, since: seq, limit };
      const {
        messages: found,
        deleted_ids,
        ...rest
      } = await world.store.read((tx) => tx.updates(query));
      const texts = found.map(({ content }) => content);
      const gone = deleted_ids.map((id) => sent.findIndex((message) => message.id === id));
      return { texts, gone: gone.toSorted((one, other) => one - other), ...rest };
    };
    return { alice, bob, room, sent, since };
  }

  check("there is nothing new since the latest change", async (world) => {
    const { since } = await talk(world, 3);
    expect(await since(3)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("messages come in the order of their latest change", async (world) => {
    const { sent, since } = await talk(world, 4);
    await world.edit(at(sent, 1), "edited");
    const seq = 5;
    expect(await since(0)).toMatchObject({ texts: ["0", "2", "3", "edited"], gone: [], seq });
    expect(await since(3)).toMatchObject({ texts: ["3", "edited"], gone: [], seq });
    expect(await since(4)).toMatchObject({ texts: ["edited"], gone: [], seq });
  });

  check("a change of the group itself moves the counter and brings no message", async (world) => {
    const { room, since } = await talk(world, 2);
    await world.store.write((tx) => tx.advance(room.id, START));
    expect(await since(2)).toEqual({ texts: [], gone: [], seq: 3, has_more: false });
  });

  check("a page never ends inside one change", async (world) => {
    const { alice, room, sent, since } = await talk(world, 8);
    await world.remove(...sent.slice(1, 6));
    await world.send(room, alice, "after");
    const page = await since(8, 2);
    expect(page).toEqual({ texts: [], gone: [1, 2, 3, 4, 5], seq: 9, has_more: true });
    expect(await since(9, 2)).toEqual({ texts: ["after"], gone: [], seq: 10, has_more: false });
    expect(await since(6, 3)).toEqual({
      texts: ["6", "7"],
      gone: [1, 2, 3, 4, 5],
      seq: 9,
      has_more: true,
    });
  });

  check("what the viewer has hidden since is gone for them", async (world) => {
    const { bob, sent, since } = await talk(world, 4);
    await world.hide(bob, at(sent, 0), at(sent, 3));
    expect(await since(4)).toMatchObject({ texts: [], gone: [0, 3], seq: 4 });
    expect(await since(2)).toMatchObject({ texts: ["2"], gone: [0, 3], seq: 4 });
  });

  check("what another has hidden is still there", async (world) => {
    const { alice, sent, since } = await talk(world, 2);
    await world.hide(alice, at(sent, 0));
    expect(await since(0)).toMatchObject({ texts: ["0", "1"], gone: [] });
  });

  check(
    "what was hidden and then deleted is gone for somebody who was away for both",
    async (world) => {
      const { bob, sent, since } = await talk(world, 3);
      await world.hide(bob, at(sent, 1));
      await world.remove(at(sent, 1));
      expect(await since(3)).toMatchObject({ texts: [], gone: [1], seq: 4 });
    },
  );

  check(
    "following them in pages of any size, at any time, gives exactly the state",
    async (world) => {
      await fc.assert(
        fc.asyncProperty(script, fc.integer({ min: 1, max: 4 }), (steps, limit) =>
          world.store.write(async (tx) => {
            const story = await newStory(tx);
            for (const step of steps) await story.take(step);
            await story.checkFollower(limit);
          }),
        ),
        { numRuns: 100 },
      );
    },
  );

  check("following them while others write misses nothing", async (world) => {
    const { alice, bob, room } = await talk(world, 0);
    const writes = Promise.all(
      times(150).map(async (n) => {
        const message = await world.send(room, alice, `${n}`);
        if (n % 3 === 0) await world.edit(message, `${n} edited`);
        if (n % 5 === 0) await world.remove(message);
      }),
    );
    let done = false;
    const ended = writes.then(() => {
      done = true;
    });
    const client = follower(room, bob);
    while (!done) {
      await world.store.read((tx) => client.follow(tx, 7));
      await nextTurn();
    }
    await ended;
    await world.store.read(async (tx) => {
      await client.follow(tx, 7);
      await client.check(tx);
    });
  });
}

function search(check: Check) {
  async function library(world: World) {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const write = (...texts: string[]) =>
      world.store.write((tx) => inTurn(texts, (text) => send(tx, room, alice, text)));
    return { alice, bob, room, write };
  }

  check("it finds what has all the words, newest first", async (world) => {
    const { bob, write } = await library(world);
    await write("red green", "green blue", "blue, red: GREEN!", "yellow");
    expect(await world.find(bob, ["green"])).toEqual([
      "blue, red: GREEN!",
      "green blue",
      "red green",
    ]);
    expect(await world.find(bob, ["red", "green"])).toEqual(["blue, red: GREEN!", "red green"]);
    expect(await world.find(bob, ["green", "yellow"])).toEqual([]);
    expect(await world.find(bob, [])).toEqual([]);
  });

  check("the last word may be the beginning of one, the others may not", async (world) => {
    const { bob, write } = await library(world);
    await write("lunch tomorrow", "lunchbox");
    expect(await world.find(bob, ["lun"])).toEqual(["lunchbox", "lunch tomorrow"]);
    expect(await world.find(bob, ["lunch", "tom"])).toEqual(["lunch tomorrow"]);
    expect(await world.find(bob, ["tom", "lunch"])).toEqual([]);
    expect(await world.find(bob, ["unch"])).toEqual([]);
  });

  check("case and accents do not matter, in any alphabet", async (world) => {
    const { bob, write } = await library(world);
    await write("Un CAFÉ crème", "cafe\u0301 noir", "Привет, МИР", "東京 tower", "Ähre");
    expect(await world.find(bob, ["cafe"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await world.find(bob, ["café"])).toEqual(["cafe\u0301 noir", "Un CAFÉ crème"]);
    expect(await world.find(bob, ["creme"])).toEqual(["Un CAFÉ crème"]);
    expect(await world.find(bob, ["привет", "мир"])).toEqual(["Привет, МИР"]);
    expect(await world.find(bob, ["東京"])).toEqual(["東京 tower"]);
    expect(await world.find(bob, ["ahre"])).toEqual(["Ähre"]);
  });

  check("it looks into one's own conversations only, or into one of them", async (world) => {
    const { alice, bob, room, write } = await library(world);
    await write("needle here");
    const hers = await world.group(alice);
    await world.send(hers, alice, "needle there");
    expect(await world.find(alice, ["needle"])).toEqual(["needle there", "needle here"]);
    expect(await world.find(bob, ["needle"])).toEqual(["needle here"]);
    expect(await world.find(alice, ["needle"], { conversationId: room.id })).toEqual([
      "needle here",
    ]);
    expect(await world.find(bob, ["needle"], { conversationId: hers.id })).toEqual([]);
  });

  check(
    "whoever leaves finds nothing there any more, and whoever joins finds everything",
    async (world) => {
      const { bob, room, write } = await library(world);
      const [carol] = await world.people("carol");
      await write("needle");
      await world.store.write(async (tx) => {
        await tx.deleteMembers(room.id, [bob.id]);
        await tx.insertMembers(room.id, [carol.id], START);
      });
      expect(await world.find(bob, ["needle"])).toEqual([]);
      expect(await world.find(carol, ["needle"])).toEqual(["needle"]);
    },
  );

  check("it knows of edits, deletions and what one has hidden, at once", async (world) => {
    const { alice, bob, write } = await library(world);
    const [one, two, three] = (await write("needle one", "needle two", "needle three")) as [
      Message,
      Message,
      Message,
    ];
    expect(await world.find(bob, ["needle"])).toHaveLength(3);
    await world.edit(one, "pin one");
    await world.remove(two);
    await world.hide(bob, three);
    expect(await world.find(bob, ["needle"])).toEqual([]);
    expect(await world.find(alice, ["needle"])).toEqual(["needle three"]);
    expect(await world.find(bob, ["pin"])).toEqual(["pin one"]);
    const [four] = (await write("needle four")) as [Message];
    await world.edit(four, "pin four");
    await world.edit(four, "needle again");
    expect(await world.find(bob, ["needle"])).toEqual(["needle again"]);
    expect(await world.find(bob, ["four"])).toEqual([]);
  });

  check("following its pages by position gives every hit once", async (world) => {
    const { bob, write } = await library(world);
    const sent = await write(...times(23).map((n) => `needle ${n}`));
    await world.hide(bob, ...sent.filter((_, n) => n % 4 === 0));
    const found: string[] = [];
    for (let before: number | undefined; ; ) {
      const query = { words: ["needle"], viewerId: bob.id, limit: 5, before };
      const page = await world.store.search(query);
      found.push(...page.map(({ uuid }) => uuid));
      before = page.at(-1)?.position;
      if (before === undefined) break;
    }
    const visible = sent.filter((_, n) => n % 4 !== 0).map(({ id }) => id);
    expect(found).toEqual(visible.toReversed());
  });

  check(
    "it finds what the viewer can see behind any number of hits that they cannot",
    async (world) => {
      const { bob, write } = await library(world);
      await write("needle first");
      const hidden = await write(...times(450).map((n) => `needle ${n}`));
      await world.hide(bob, ...hidden);
      expect(await world.find(bob, ["needle"], { limit: 1 })).toEqual(["needle first"]);
    },
  );

  check("it finds its way through hundreds of conversations", async (world) => {
    const { alice, bob } = await library(world);
    await world.store.write((tx) =>
      inTurn(times(450), async (n) => {
        const room = await newGroup(tx, n % 3 === 0 ? [alice] : [alice, bob]);
        if (n % 100 === 0) await send(tx, room, alice, `needle ${n}`);
      }),
    );
    expect(await world.find(alice, ["needle"])).toEqual(
      [400, 300, 200, 100, 0].map((n) => `needle ${n}`),
    );
    expect(await world.find(bob, ["needle"])).toEqual([400, 200, 100].map((n) => `needle ${n}`));
  });

  check("characters with a meaning to search engines have none here", async (world) => {
    const { bob, room, write } = await library(world);
    await write("plain words", "and or not near", "a-b a:b", "50% off_it");
    const syntax = [
      ...`" ' * ^ - + : ( ) { } [ ] \\ | & ! % _ < > ~ / ; , . @ # $ \``.split(" "),
      ..."content:plain {content}:plain ^plain -plain plain* *plain NEAR(plain,words)".split(" "),
      ..."plain:* plain&words plain|words !plain <-> 'plain''words".split(" "),
      `c${room.id}`,
      'plain" OR "words',
      "plain') OR 1=1 --",
      "\\\\",
    ];
    for (const word of syntax) {
      const found = await world.find(bob, [word]);
      const bare = (word.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(" ");
      // Either the whole is taken as text, and then found where that text stands, or as nothing.
      for (const text of found) expect([word, text]).toEqual([word, expect.stringContaining(bare)]);
      if (bare === "") expect([word, found]).toEqual([word, []]);
    }
    for (const word of ["and", "or", "not", "near", "AND", "OR", "NOT", "NEAR"]) {
      expect([word, await world.find(bob, [word])]).toEqual([word, ["and or not near"]]);
    }
  });

  check(
    "a word of which the engine knows no character finds nothing, and not everything",
    async (world) => {
      const { bob, write } = await library(world);
      await write("plain words");
      for (const word of ["\u0301", "\u{1e900}", "👍", "…", ""]) {
        expect([word, await world.find(bob, [word])]).toEqual([word, []]);
      }
    },
  );

  check("no words make it fail, or show what is somebody else's", async (world) => {
    const { alice, bob, write } = await library(world);
    await write("plain words", "AND OR", "é 東京 1 2 3");
    const secret = await world.group(alice);
    await world.send(secret, alice, "plain secret AND OR é 東京 1 2 3");
    const words = fc.array(fc.string({ unit: "grapheme", maxLength: 8 }), { maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(words, async (any) => {
        expect(await world.find(bob, any)).not.toContainEqual(expect.stringContaining("secret"));
      }),
      { numRuns: 100 },
    );
  });
}

function agents(check: Check) {
  const UNLIMITED = {
    spenders: "participants",
    daily_tokens: null,
    chat_daily_tokens: null,
    turns_per_minute: null,
  } as const;

  async function owned({ store, people }: World) {
    const [alice, bob] = await people("alice", "bob");
    const [gpt, claude, his] = (await store.write((tx) =>
      inTurn(
        [
          [alice, "gpt"],
          [alice, "claude"],
          [bob, "claude"],
        ] as const,
        ([owner, provider]) => newAgent(tx, owner, provider),
      ),
    )) as [AccountRecord, AccountRecord, AccountRecord];
    const agent = (account: AccountRecord) => store.read((tx) => tx.agent(account.id));
    const setKey = (owner: AccountRecord, sealed: string, provider = "claude") =>
      store.write((tx) =>
        tx.setAgentKey({ owner_id: owner.id, provider, sealed, tail: `…${sealed}`, at: START }),
      );
    return { alice, bob, gpt, claude, his, agent, setKey };
  }

  check("one that was never touched has no settings, and its owner", async (world) => {
    const { alice, claude, agent } = await owned(world);
    expect(await agent(claude)).toEqual({
      account: claude,
      owner: alice,
      model: null,
      instructions: null,
      limits: UNLIMITED,
      sealed_key: null,
      key_tail: null,
    });
    expect(await agent(alice)).toBeNull();
  });

  check("an owner's are listed by provider", async (world) => {
    const { alice, gpt, claude } = await owned(world);
    const list = await world.store.read((tx) => tx.agents(alice.id));
    expect(list.map(({ account }) => account)).toEqual([claude, gpt]);
  });

  check(
    "a key belongs to one owner and provider, and can be replaced and removed",
    async (world) => {
      const { alice, bob, gpt, claude, his, agent, setKey } = await owned(world);
      const keyOf = async (account: AccountRecord) => {
        const found = await agent(account);
        return [found?.sealed_key, found?.key_tail];
      };
      await setKey(alice, "first");
      await setKey(bob, "his");
      await setKey(alice, "second");
      expect(await keyOf(claude)).toEqual(["second", "…second"]);
      expect(await keyOf(his)).toEqual(["his", "…his"]);
      expect(await keyOf(gpt)).toEqual([null, null]);
      await world.store.write((tx) => tx.removeAgentKey(alice.id, "claude"));
      await world.store.write((tx) => tx.removeAgentKey(alice.id, "gpt"));
      expect(await keyOf(claude)).toEqual([null, null]);
      expect(await keyOf(his)).toEqual(["his", "…his"]);
    },
  );

  check("a key is sealed anew unless it was changed meanwhile", async (world) => {
    const { alice, bob, setKey } = await owned(world);
    await setKey(alice, "hers");
    await setKey(bob, "his");
    const sealed = await world.store.read((tx) => tx.sealedKeys());
    await setKey(bob, "changed");
    await world.store.write((tx) =>
      inTurn(sealed, (key) => tx.resealKey(key, `${key.sealed} again`)),
    );
    const keys = await world.store.read((tx) => tx.sealedKeys());
    expect(keys.toSorted((one, other) => one.owner_id - other.owner_id)).toEqual([
      { owner_id: alice.id, provider: "claude", sealed: "hers again" },
      { owner_id: bob.id, provider: "claude", sealed: "changed" },
    ]);
  });

  check("profile and limits are set apart from each other", async (world) => {
    const { claude, gpt, agent } = await owned(world);
    const { store } = world;
    const limits = { ...UNLIMITED, spenders: "owner", daily_tokens: 1000 } as const;
    const profile = { model: "large", instructions: "Be brief." };
    await store.write((tx) => tx.setAgentProfile(claude.id, profile));
    expect(await agent(claude)).toMatchObject({ ...profile, limits: UNLIMITED });
    await store.write((tx) => tx.setAgentLimits(claude.id, limits));
    expect(await agent(claude)).toMatchObject({ ...profile, limits });
    await store.write((tx) => tx.setAgentProfile(claude.id, { model: null, instructions: null }));
    expect(await agent(claude)).toMatchObject({ model: null, instructions: null, limits });
    expect(await agent(gpt)).toMatchObject({ model: null, limits: UNLIMITED });
    await store.write((tx) => tx.setAgentLimits(claude.id, UNLIMITED));
    expect(await agent(claude)).toMatchObject({ limits: UNLIMITED });
  });

  check("a conversation's are counted, and each has a mode that goes with it", async (world) => {
    const { alice, bob, gpt, claude } = await owned(world);
    const { store } = world;
    const room = await world.group(alice, bob, gpt);
    const other = await world.group(alice, gpt);
    const seats = () => store.read((tx) => tx.conversationAgents(room.id));
    const count = async () => (await store.read((tx) => conversationOf(tx, room))).agent_count;
    const seat = (account: AccountRecord, always_on: boolean) => ({
      account,
      always_on,
      spenders: "participants" as const,
    });
    await store.write(async (tx) => {
      await tx.insertMembers(room.id, [claude.id], START);
      await tx.setAlwaysOn(room.id, gpt.id, true);
    });
    expect([await seats(), await count()]).toEqual([[seat(gpt, true), seat(claude, false)], 2]);
    expect(await store.read((tx) => tx.conversationAgents(other.id))).toEqual([seat(gpt, false)]);
    expect(await store.read((tx) => tx.members(room.id))).toContainEqual({
      account: gpt,
      always_on: true,
      last_read_seq: 0,
    });
    await store.write((tx) => tx.deleteMembers(room.id, [gpt.id]));
    expect([await seats(), await count()]).toEqual([[seat(claude, false)], 1]);
    await store.write((tx) => tx.insertMembers(room.id, [gpt.id], START));
    expect(await seats()).toEqual([seat(claude, false), seat(gpt, false)]);
  });
}

/** Alice and her agent in a room, and what happens to the agent's turns. */
async function desk({ store, people, group, send: say }: World) {
  const [alice, bob] = await people("alice", "bob");
  const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
  const room = await group(alice, bob, agent);
  const queue = (trigger: Message, rest: Partial<NewTurn> = {}) =>
    store.write((tx) =>
      tx.queueTurn({
        agent_id: agent.id,
        conversation_id: room.id,
        trigger_uuid: trigger.id,
        open_ended: true,
        refusal: null,
        at: START,
        ...rest,
      }),
    );
  const claim = (node = "here", most = 10) =>
    store.write((tx) => tx.claimTurns(node, START + 10_000, most));
  /** Asks, and has the agent begin to answer. */
  const begin = async (where = room, at = START) => {
    await queue(await say(where, alice, "question"), { conversation_id: where.id });
    const [turn] = (await claim()) as [TurnRecord];
    const message = await store.write((tx) => placeholder(tx, where, turn, at));
    return { id: turn.id, message };
  };
  const finish = (id: number, rest: Partial<FinishedTurn> = {}) =>
    store.write((tx) => finishTurn(tx, id, rest));
  const append = (id: number, text: string, offset: number, first = false) =>
    store.write((tx) => tx.appendChunk(id, { text, offset, first, at: START + 5 }));
  const turn = (id: number) => store.read((tx) => tx.turn(id));
  const open = () => store.read((tx) => tx.openTurns(room.id));
  return { alice, bob, agent, room, queue, claim, begin, finish, append, turn, open };
}

async function placeholder(tx: WriteTx, room: Room, turn: TurnRecord, at = START) {
  const started = { status: "streaming", model: "m", error: null, usage: null } as const;
  const message = await send(tx, room, turn.agent, "", {
    turn: { ...started, triggered_by: turn.trigger_uuid },
    at,
  });
  await tx.beginTurn(turn.id, { messageUuid: message.id, model: "m", at });
  return message;
}

async function finishTurn(tx: WriteTx, id: number, rest: Partial<FinishedTurn> = {}) {
  const turn = await tx.turn(id);
  if (!turn) throw new Error("the turn is missing");
  const ending = { status: "complete", content: "answer", mentions: [], error: null } as const;
  return tx.finishTurn(turn, { ...ending, usage: null, at: START + 9, ...rest });
}

function turns(check: Check) {
  check("a turn waits with what it was asked", async (world) => {
    const { alice, agent, room, queue, turn, open } = await desk(world);
    const asked = await world.send(room, alice, "question");
    await queue(asked);
    const [waiting] = (await open()) as [TurnRecord];
    expect(waiting).toMatchObject({
      agent,
      conversation_id: room.id,
      conversation_uuid: room.uuid,
      trigger_uuid: asked.id,
      trigger_seq: asked.seq,
      trigger_sender_id: alice.id,
      trigger_deleted: false,
      open_ended: true,
      refusal: null,
      status: "waiting",
      message_id: null,
      message_uuid: null,
      tries: 0,
      usage: null,
    });
    expect(await turn(waiting.id)).toEqual(waiting);
    expect(await turn(waiting.id + 1)).toBeNull();
    await world.remove(asked);
    expect(await turn(waiting.id)).toMatchObject({ trigger_deleted: true });
  });

  check(
    "one that waits and is open-ended takes the new trigger, any other stays",
    async (world) => {
      const { alice, room, queue, claim, open } = await desk(world);
      const asked = await inTurn(times(7), (n) => world.send(room, alice, `${n}`));
      const waiting = async () =>
        (await open()).map(({ trigger_uuid, status }) => [
          asked.findIndex(({ id }) => id === trigger_uuid),
          status,
        ]);
      await queue(at(asked, 0));
      await queue(at(asked, 1));
      expect(await waiting()).toEqual([[1, "waiting"]]);
      await claim();
      await queue(at(asked, 2));
      await queue(at(asked, 3));
      expect(await waiting()).toEqual([
        [1, "running"],
        [3, "waiting"],
      ]);
      await queue(at(asked, 4), { open_ended: false });
      await queue(at(asked, 5), { refusal: "No." });
      await queue(at(asked, 6));
      expect(await waiting()).toEqual([
        [1, "running"],
        [6, "waiting"],
        [4, "waiting"],
        [5, "waiting"],
      ]);
    },
  );

  check(
    "turns are taken one at a time for each agent and conversation, oldest first",
    async (world) => {
      const { alice, agent, room, queue, claim, finish } = await desk(world);
      const other = await world.group(alice, agent);
      const asked = [
        await world.send(room, alice, "1"),
        await world.send(room, alice, "2"),
        await world.send(other, alice, "3"),
      ];
      const [one, two, three] = asked as [Message, Message, Message];
      await queue(one, { open_ended: false });
      await queue(two, { open_ended: false });
      await queue(three, { open_ended: false, conversation_id: other.id });
      const claimed = await claim();
      const triggers = (list: TurnRecord[]) => list.map(({ trigger_uuid }) => trigger_uuid);
      expect(triggers(claimed)).toEqual([one.id, three.id]);
      expect(claimed.map(({ status }) => status)).toEqual(["running", "running"]);
      expect(await claim()).toEqual([]);
      const [first] = claimed as [TurnRecord];
      await world.store.write(async (tx) => {
        await placeholder(tx, room, first);
      });
      await finish(first.id);
      expect(triggers(await claim())).toEqual([two.id]);
    },
  );

  check("no more are taken than asked for", async (world) => {
    const { alice, agent, queue, claim } = await desk(world);
    for (const _ of times(5)) {
      const room = await world.group(alice, agent);
      await queue(await world.send(room, alice, "question"), { conversation_id: room.id });
    }
    expect(await claim("here", 2)).toHaveLength(2);
    expect(await claim("here", 2)).toHaveLength(2);
    expect(await claim("here", 2)).toHaveLength(1);
  });

  check("nodes that take at the same time never take the same", async (world) => {
    const { alice, agent, queue, claim } = await desk(world);
    for (const _ of times(12)) {
      const room = await world.group(alice, agent);
      await queue(await world.send(room, alice, "question"), { conversation_id: room.id });
    }
    const taken = (await Promise.all(times(8).map((n) => claim(`node ${n}`, 3)))).flat();
    expect(taken).toHaveLength(12);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(12);
  });

  check("those that wait can be dropped, those that run cannot", async (world) => {
    const { alice, room, begin, queue, open } = await desk(world);
    const { id } = await begin();
    await queue(await world.send(room, alice, "more"));
    const ids = (await open()).map((turn) => turn.id);
    await world.store.write((tx) => tx.dropTurns(ids));
    expect((await open()).map((turn) => turn.id)).toEqual([id]);
  });

  check("a turn's message is unread, and not final until the turn is", async (world) => {
    const { alice, bob, room, begin, finish, turn } = await desk(world);
    const { id, message } = await begin();
    expect(message).toMatchObject({ content: "", finalized_at: null, seq: 2 });
    expect((await world.view(room, bob)).unread).toEqual({ human: 1, agent: 1, mentions: 0 });
    const record = await world.store.read((tx) => recordOf(tx, message));
    expect(record.finalized).toBe(false);
    const running = await turn(id);
    expect(running).toMatchObject({
      status: "running",
      message_id: record.id,
      message_uuid: message.id,
      model: "m",
      started_at: START,
    });
    expect(await world.store.read((tx) => tx.turnOfMessage(record))).toEqual(running);
    const error = { code: "timeout", message: "Too late." } as const;
    const usage = { input_tokens: 3, output_tokens: 4 };
    const version = await finish(id, {
      status: "failed",
      content: "Hi @bob",
      mentions: ["bob"],
      error,
      usage,
    });
    expect(version).toBe(3);
    const [final] = await world.store.read((tx) => tx.messageViews([message.id], alice.id));
    expect(final).toEqual({
      ...message,
      version: 3,
      content: "Hi @bob",
      mentions: ["bob"],
      finalized_at: new Date(START + 9).toISOString(),
      turn: { ...message.turn, status: "failed", error, usage } as Message["turn"],
    });
    expect(await turn(id)).toMatchObject({
      status: "failed",
      error,
      usage,
      finished_at: START + 9,
    });
    expect((await world.view(room, bob)).unread).toEqual({ human: 1, agent: 1, mentions: 1 });
    expect(await world.find(bob, ["hi"])).toEqual(["Hi @bob"]);
  });

  check("what a turn has streamed is shown while it runs", async (world) => {
    const { bob, room, begin, append, finish, turn } = await desk(world);
    const { id, message } = await begin();
    expect(await append(id, "Grü", 4, true)).toBe(true);
    expect(await append(id, "ße, 👍", 13)).toBe(true);
    expect(await append(id, "!", 14)).toBe(true);
    const { message_id: row } = (await turn(id)) as TurnRecord;
    expect(await world.store.read((tx) => tx.streamed(row as number))).toBe("Grüße, 👍!");
    expect(await turn(id)).toMatchObject({ first_token_at: START + 5 });
    expect(await world.texts(room, bob)).toEqual(["question", "Grüße, 👍!"]);
    expect((await world.view(room, bob)).last_message).toMatchObject({
      id: message.id,
      content: "Grüße, 👍!",
      finalized_at: null,
    });
    expect((await world.view(room, bob)).seq).toBe(2);
    await finish(id, { content: "Grüße, 👍!" });
    expect(await world.texts(room, bob)).toEqual(["question", "Grüße, 👍!"]);
  });

  check("nothing is added to a turn that has ended", async (world) => {
    const { bob, room, begin, append, finish } = await desk(world);
    const { id } = await begin();
    await append(id, "Hello", 5, true);
    await finish(id, { status: "stopped", content: "Hello" });
    expect(await append(id, " there", 11)).toBe(false);
    expect(await world.texts(room, bob)).toEqual(["question", "Hello"]);
  });

  check("tries are noted", async (world) => {
    const { begin, turn } = await desk(world);
    const { id } = await begin();
    await world.store.write((tx) => tx.noteTries(id, 2));
    expect(await turn(id)).toMatchObject({ tries: 2 });
  });

  check("a turn whose node is gone can be taken over", async (world) => {
    const { begin, turn, finish } = await desk(world);
    const { store } = world;
    const { id } = await begin();
    const abandoned = async (node: string, now: number) =>
      (await store.read((tx) => tx.abandonedTurns(node, now))).map((each) => each.id);
    expect(await abandoned("here", START)).toEqual([]);
    await store.write((tx) => tx.renewLeases("here", START + 20_000));
    expect(await abandoned("here", START + 15_000)).toEqual([]);
    expect(await abandoned("there", START + 20_001)).toEqual([id]);
    await store.write(async (tx) => {
      const reservation = { input_tokens: 5, output_tokens: 5, context_ids: [] };
      await tx.reserveTurn((await tx.turn(id)) as TurnRecord, reservation);
      await tx.adoptTurn(id, "there", START + 40_000);
    });
    expect(await abandoned("there", START + 30_000)).toEqual([]);
    expect(await turn(id)).toMatchObject({ status: "running", reserved: 0 });
    await finish(id);
    expect(await abandoned("elsewhere", START + 90_000)).toEqual([]);
  });

  check(
    "an agent's context is what its owner can see of what is final, newest first",
    async (world) => {
      const { alice, bob, room, begin } = await desk(world);
      const sent = await inTurn(times(6), (n) => world.send(room, bob, `${n}`));
      await world.remove(at(sent, 1));
      await world.hide(alice, at(sent, 2));
      await world.hide(bob, at(sent, 3));
      await begin();
      const context = async (upTo: number, limit: number) => {
        const query = { conversationId: room.id, viewerId: alice.id, upTo, limit };
        return (await world.store.read((tx) => tx.contextMessages(query))).map(
          (one) => one.content,
        );
      };
      expect(await context(100, 100)).toEqual(["question", "5", "4", "3", "0"]);
      expect(await context(100, 2)).toEqual(["question", "5"]);
      expect(await context(at(sent, 4).seq, 2)).toEqual(["4", "3"]);
    },
  );
}

function spending(check: Check) {
  const DAY = 86_400_000;
  const reserve = (world: World, id: number, input_tokens: number, output_tokens: number) =>
    world.store.write(async (tx) => {
      const turn = (await tx.turn(id)) as TurnRecord;
      await tx.reserveTurn(turn, { input_tokens, output_tokens, context_ids: [turn.trigger_uuid] });
    });

  check("what is reserved counts until the turn is over, and then what was used", async (world) => {
    const { alice, agent, room, begin, finish, turn } = await desk(world);
    const other = await world.group(alice, agent);
    const spent = (where: Room, now = START) =>
      world.store.read((tx) => tx.spending(agent.id, where.id, now));
    const { id } = await begin();
    await reserve(world, id, 100, 50);
    expect(await turn(id)).toMatchObject({
      reserved: 150,
      estimated_input: 100,
      context_ids: [(await turn(id))?.trigger_uuid],
    });
    expect(await spent(room)).toEqual({ today: 150, todayHere: 150, turnsInMinute: 1 });
    expect(await spent(other)).toEqual({ today: 150, todayHere: 0, turnsInMinute: 1 });
    await finish(id, { usage: { input_tokens: 90, output_tokens: 10 } });
    expect(await turn(id)).toMatchObject({ reserved: 0 });
    expect(await spent(room)).toEqual({ today: 100, todayHere: 100, turnsInMinute: 1 });
    const later = await begin(other);
    await reserve(world, later.id, 1, 2);
    await finish(later.id, { status: "failed", usage: null });
    expect(await spent(other)).toEqual({ today: 100, todayHere: 0, turnsInMinute: 2 });
    expect(await spent(room, START + 60_001)).toMatchObject({ today: 100, turnsInMinute: 0 });
    expect(await spent(room, START + DAY)).toEqual({ today: 0, todayHere: 0, turnsInMinute: 0 });
  });

  check("what an abandoned turn had reserved is free when it is taken over", async (world) => {
    const { agent, room, begin } = await desk(world);
    const { id } = await begin();
    await reserve(world, id, 100, 50);
    await world.store.write((tx) => tx.adoptTurn(id, "there", START + 10_000));
    const spent = await world.store.read((tx) => tx.spending(agent.id, room.id, START));
    expect(spent).toMatchObject({ today: 0, todayHere: 0 });
  });

  check("usage is told to the owner by agent, conversation and day", async (world) => {
    const { alice, bob, agent, room, begin, finish } = await desk(world);
    const usage = { input_tokens: 10, output_tokens: 1 };
    for (const [day, status] of [
      [0, "complete"],
      [0, "failed"],
      [2, "stopped"],
    ] as const) {
      const { id } = await begin(room, START + day * DAY);
      await finish(id, { status, usage, at: START + day * DAY });
    }
    const told = (owner: AccountRecord, since: number | null, until: number | null) =>
      world.store.read((tx) => tx.usage(owner.id, since, until));
    const row = (day: string, turnCount: number, failures: number) => ({
      agent: agent.username,
      conversation_id: room.uuid,
      day,
      turns: turnCount,
      failures,
      input_tokens: 10 * turnCount,
      output_tokens: turnCount,
    });
    const [first, third] = [row("2026-11-15", 2, 1), row("2026-11-17", 1, 0)];
    expect(await told(alice, null, null)).toEqual([first, third]);
    expect(await told(alice, START + DAY, null)).toEqual([third]);
    expect(await told(alice, null, START + DAY)).toEqual([first]);
    expect(await told(alice, START, START + 2 * DAY)).toEqual([first, third]);
    expect(await told(bob, null, null)).toEqual([]);
  });

  check("a turn that runs past midnight counts for the day on which it began", async (world) => {
    const { alice, agent, room, begin, finish } = await desk(world);
    const { id } = await begin(room, START + DAY - 1);
    await reserve(world, id, 100, 100);
    await finish(id, { usage: { input_tokens: 7, output_tokens: 7 }, at: START + DAY + 5 });
    const spent = (now: number) => world.store.read((tx) => tx.spending(agent.id, room.id, now));
    expect(await spent(START + DAY - 1)).toMatchObject({ today: 14 });
    expect(await spent(START + DAY)).toMatchObject({ today: 0 });
    const days = await world.store.read((tx) => tx.usage(alice.id, null, null));
    expect(days.map(({ day }) => day)).toEqual(["2026-11-15"]);
  });
}

function closing(check: Check) {
  check("everything is still there when it is opened again", async (world) => {
    const [alice, bob] = await world.people("alice", "bob");
    const room = await world.group(alice, bob);
    const sent = await inTurn(times(6), (n) =>
      world.send(room, alice, `needle ${n}`, { client_msg_id: `${n}`, mentions: ["bob"] }),
    );
    await world.edit(at(sent, 0), "needle edited", ["bob"]);
    await world.remove(at(sent, 1), at(sent, 2));
    await world.hide(bob, at(sent, 3));
    await world.store.write(async (tx) => {
      await tx.addReaction(await recordOf(tx, at(sent, 4)), {
        reactor: bob,
        emoji: "👍",
        at: START,
      });
      await tx.markRead(room.id, bob.id, 5);
      const session = { token_hash: "hash", account_id: bob.id, user_agent: "x", at: START };
      await tx.insertSession({ id: Bun.randomUUIDv7(), ...session, expires_at: START + 1000 });
    });
    const everything = async (store: Store) => ({
      hits: await store.search({ words: ["needle"], viewerId: bob.id, limit: 100 }),
      ...(await store.read(async (tx) => ({
        accounts: await tx.listAccounts({ viewerId: bob.id, limit: 100 }),
        session: await tx.session("hash"),
        chats: await tx.chats({ viewerId: bob.id, limit: 100 }),
        detail: await tx.conversationDetail(room.id, bob.id),
        members: await tx.members(room.id),
        history: await wholeHistory(tx, room, bob),
        updates: await tx.updates({
          conversationId: room.id,
          viewerId: bob.id,
          since: 0,
          limit: 100,
        }),
        sentBefore: await tx.sentBefore(room.id, alice.id, "1"),
      }))),
    });
    const before = await everything(world.store);
    expect(before.hits).toHaveLength(3);
    const reopened = await world.reopen();
    expect(await everything(reopened)).toEqual(before);
    const next = await reopened.write((tx) => send(tx, room, alice, "next"));
    expect(next.seq).toBe(before.detail.seq + 1);
  });

  check(
    "a write under way while it closes is kept or refused, and nothing in between",
    async (world) => {
      const [alice] = await world.people("alice");
      const room = await world.group(alice);
      const writes = times(40).map((n) => world.send(room, alice, `${n}`).catch(() => null));
      const reopening = world.reopen();
      const kept = (await Promise.all(writes)).filter((message) => message !== null);
      const reopened = await reopening;
      const shown = await reopened.read((tx) => wholeHistory(tx, room, alice));
      expect(shown).toEqual(kept);
    },
  );

  check("a store that is closed refuses to write", async (world) => {
    const reopened = await world.reopen();
    let refused = false;
    world.people("alice").catch(() => {
      refused = true;
    });
    // Time enough for a store that works to have done as much.
    for (const n of times(3)) {
      await reopened.write((tx) => newAccount(tx, { username: `user${n}` }));
    }
    expect(refused).toBe(true);
    expect(await reopened.read((tx) => tx.account("alice"))).toBeNull();
  });
}

type Step =
  | { do: "send"; who: number; mentions: number[] }
  | { do: "read"; who: number; part: number }
  | { do: "delete"; which: number[] }
  | { do: "hide"; who: number; which: number[] }
  | { do: "edit"; which: number; mentions: number[] }
  | { do: "react"; who: number; which: number }
  | { do: "answer"; mentions: number[] }
  | { do: "come or go"; who: number }
  | { do: "follow"; limit: number };

const who = fc.nat(4);
const which = fc.nat(11);
const several = fc.array(which, { minLength: 1, maxLength: 4 });
const mentions = fc.array(who, { maxLength: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("send"), who, mentions }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("read"), who, part: fc.nat(10) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete"), which: several }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("hide"), who, which: several }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("edit"), which, mentions }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("react"), who, which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("answer"), mentions }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("come or go"), who }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("follow"), limit: fc.integer({ min: 1, max: 3 }) }),
  },
) as fc.Arbitrary<Step>;
const script = fc.array(step, { maxLength: 40, size: "max" });

interface Told {
  id: string;
  seq: number;
  sender: AccountRecord;
  mentions: string[];
  deleted: boolean;
  readonly hiddenFrom: Set<AccountRecord>;
}

/**
 * A group in which anything happens, kept beside the store as simply as can be: what was sent, who
 * has hidden it, how far everybody has read. All within one unit of work, so that it is quick.
 */
async function newStory(tx: WriteTx) {
  const prefix = `story${unique()}_`;
  const humans = await inTurn(["a", "b", "c", "d"], (name) =>
    newAccount(tx, { username: prefix + name }),
  );
  const [reader] = humans as [AccountRecord];
  const agent = await newAgent(tx, reader, "claude");
  const everybody = humans.toSpliced(2, 0, agent);
  const room = await newGroup(tx, everybody.slice(0, 3));
  const places = new Map(everybody.slice(0, 3).map((account) => [account, 0]));
  const told: Told[] = [];
  const client = follower(room, reader);
  let counter = 0;
  let running: { turn: number; message: Told } | null = null;

  const present = (n: number) => at([...places.keys()], n);
  const names = (chosen: number[]) => [...new Set(chosen.map((n) => present(n).username))];
  const alive = () => told.filter(({ deleted }) => !deleted);
  const final = () => alive().filter((message) => message !== running?.message);
  const chosenOf = (list: Told[], chosen: number[]) =>
    list.length === 0 ? [] : [...new Set(chosen.map((n) => at(list, n)))];
  const counted = (value: number) => expect(value).toBe(++counter);
  const tell = ({ id, seq, mentions: named }: Message, sender: AccountRecord): Told => {
    counted(seq);
    places.set(sender, seq);
    const message: Told = {
      id,
      seq,
      sender,
      mentions: named,
      deleted: false,
      hiddenFrom: new Set(),
    };
    told.push(message);
    return message;
  };

  async function beginAnswer(): Promise<void> {
    const trigger = told.at(-1);
    if (!trigger || !places.has(agent)) return;
    const asked = { agent_id: agent.id, conversation_id: room.id, trigger_uuid: trigger.id };
    await tx.queueTurn({ ...asked, open_ended: true, refusal: null, at: START });
    const claimed = await tx.claimTurns("here", START, 100);
    const turn = claimed.find(({ conversation_id }) => conversation_id === room.id) as TurnRecord;
    running = { turn: turn.id, message: tell(await placeholder(tx, room, turn), agent) };
  }

  async function endAnswer(named: string[]): Promise<void> {
    if (!running) return;
    counted(await finishTurn(tx, running.turn, { mentions: named }));
    running.message.mentions = named;
    running = null;
  }

  const steps: { [Do in Step["do"]]: (step: Extract<Step, { do: Do }>) => Promise<void> } = {
    send: async ({ who: n, mentions: chosen }) => {
      const sender = present(n);
      const options = { mentions: names(chosen) };
      tell(await send(tx, room, sender, `${told.length}`, options), sender);
    },
    read: async ({ who: n, part }) => {
      const account = present(n);
      const seq = Math.round((counter * part) / 10);
      const before = places.get(account) as number;
      expect(await tx.markRead(room.id, account.id, seq)).toBe(seq > before);
      places.set(account, Math.max(seq, before));
    },
    delete: async ({ which: chosen }) => {
      const gone = chosenOf(final(), chosen);
      if (gone.length === 0) return;
      counted(await tx.deleteMessages(await recordsOf(tx, gone), START));
      for (const message of gone) message.deleted = true;
    },
    hide: async ({ who: n, which: chosen }) => {
      const hidden = chosenOf(alive(), chosen);
      await tx.hideMessages(await recordsOf(tx, hidden), present(n).id);
      for (const message of hidden) message.hiddenFrom.add(present(n));
    },
    edit: async ({ which: n, mentions: chosen }) => {
      const [message] = chosenOf(final(), [n]);
      if (!message) return;
      const record = await recordOf(tx, message);
      counted(await tx.editMessage(record, `edited ${counter}`, names(chosen), START));
      message.mentions = names(chosen);
    },
    react: async ({ who: n, which: m }) => {
      const [message] = chosenOf(alive(), [m]);
      if (!message) return;
      const reactor = present(n);
      const record = await recordOf(tx, message);
      const there = await tx.reaction(record, reactor, "👍");
      if (there) counted(await tx.removeReaction(record, reactor.id, "👍"));
      else counted(await tx.addReaction(record, { reactor, emoji: "👍", at: START }));
    },
    answer: ({ mentions: chosen }) => (running ? endAnswer(names(chosen)) : beginAnswer()),
    "come or go": async ({ who: n }) => {
      const account = at(everybody, n);
      if (account === reader) return;
      if (account === agent) await endAnswer([]);
      if (places.has(account)) await tx.deleteMembers(room.id, [account.id]);
      else await tx.insertMembers(room.id, [account.id], START);
      if (!places.delete(account)) places.set(account, counter);
      counted(await tx.advance(room.id, START));
    },
    follow: ({ limit }) => client.follow(tx, limit),
  };

  return {
    take: (one: Step) => steps[one.do](one as never),
    async checkFollower(limit: number) {
      await endAnswer([]);
      await client.follow(tx, limit);
      await client.check(tx);
    },
    /** What the store says is unread must be what counting messages says. */
    async checkFigures() {
      for (const [account, place] of places) {
        const unread = alive().filter(
          ({ seq, hiddenFrom }) => seq > place && !hiddenFrom.has(account),
        );
        const agent = unread.filter(({ sender }) => sender.kind === "agent").length;
        const mentioned = unread.filter((message) => message.mentions.includes(account.username));
        const view = await tx.conversationView(room.id, account.id);
        const { seq, unread_count, unread: figures, last_read_seq } = view;
        expect({ seq, unread_count, figures, last_read_seq }).toEqual({
          seq: counter,
          unread_count: unread.length,
          figures: { human: unread.length - agent, agent, mentions: mentioned.length },
          last_read_seq: place,
        });
        expect(await tx.unreadCount(room.id, account.id)).toBe(unread.length);
      }
    },
  };
}

/** A client that knows of a room only what updates tell it. */
function follower(room: Room, viewer: AccountRecord) {
  const known = new Map<string, Message>();
  let since = 0;
  return {
    async follow(tx: ReadTx, limit: number): Promise<void> {
      for (let more = true; more; ) {
        const query = { conversationId: room.id, viewerId: viewer.id, since, limit };
        const page = await tx.updates(query);
        for (const message of page.messages) known.set(message.id, message);
        for (const id of page.deleted_ids) known.delete(id);
        if (page.has_more) expect(page.seq).toBeGreaterThan(since);
        since = page.seq;
        more = page.has_more;
      }
    },
    async check(tx: ReadTx): Promise<void> {
      const mine = [...known.values()].toSorted((one, other) => one.seq - other.seq);
      expect(mine).toEqual(await wholeHistory(tx, room, viewer));
      expect(since).toBe((await conversationOf(tx, room)).seq);
    },
  };
}

const shown = ({ username, kind, display_name }: AccountRecord): Account => ({
  username,
  kind,
  display_name,
});
/** The n-th of a list that begins again at its end. */
const at = <Item>(list: readonly Item[], n: number): Item => list[n % list.length] as Item;
const byName = (list: AccountRecord[]) =>
  list.toSorted((one, other) => (one.username < other.username ? -1 : 1));

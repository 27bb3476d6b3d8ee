import { expect } from "bun:test";
import type { NewAccount } from "../../../src/store/accounts.ts";
import {
  type Check,
  conversationOf,
  failed,
  NOBODY,
  newAccount,
  newAgent,
  START,
  times,
} from "./fixture.ts";

export function productUsers(check: Check) {
  const user = (n: number, more: Partial<NewAccount> = {}): NewAccount => ({
    username: `user_${n}`,
    kind: "human",
    display_name: `User ${n}`,
    external_id: `id ${n}`,
    at: START,
    ...more,
  });
  const byName = <Each extends { username: string }>(list: readonly Each[]) =>
    list.toSorted((one, other) => (one.username < other.username ? -1 : 1));

  check("many accounts are inserted at once, and found like any other", async ({ store }) => {
    const made = await store.write((tx) => tx.insertAccounts(times(500).map((n) => user(n))));
    expect(made).toHaveLength(500);
    const [first] = byName(made);
    expect(first).toMatchObject({ username: "user_0", kind: "human", owner_id: null });
    expect(await store.read((tx) => tx.account("user_0"))).toEqual(first as never);
    const query = { viewerId: first?.id ?? 0, query: "user 49", limit: 100 };
    const found = await store.read((tx) => tx.findAccounts(query));
    expect(found.map(({ username }) => username)).toContain("user_499");
    expect(await store.write((tx) => tx.insertAccounts([]))).toEqual([]);
  });

  check("accounts whose username or external id is taken are left out", async ({ store }) => {
    await store.write((tx) => newAccount(tx, { username: "user_1", external_id: "id 2" }));
    const made = await store.write((tx) => tx.insertAccounts([1, 2, 3].map((n) => user(n))));
    expect(made.map(({ username }) => username)).toEqual(["user_3"]);
    expect(await store.read((tx) => tx.account("user_2"))).toBeNull();
  });

  check("users are found by their external ids, with their metadata", async ({ store }) => {
    const metadata = { plan: "gold", größe: "" };
    await store.write((tx) => tx.insertAccounts([user(1, { metadata }), user(2)]));
    const find = async () =>
      byName(await store.read((tx) => tx.productAccounts(["id 1", "id 2", "id 3", "ID 1"])));
    const found = await find();
    expect(found).toMatchObject([
      { username: "user_1", external_id: "id 1", metadata },
      { username: "user_2", external_id: "id 2", metadata: null },
    ]);
    await store.write((tx) => tx.setMetadata(found[1]?.id ?? 0, { plan: "free" }));
    expect((await find())[1]).toMatchObject({ metadata: { plan: "free" } });
    expect((await find())[0]).toMatchObject({ metadata });
  });

  check(
    "the policy of a user is stored, replaced, and erased with the account",
    async (fixture) => {
      const { store } = fixture;
      const policy = { directory: "shared", rename: false } as const;
      const [ada] = await store.write((tx) => tx.insertAccounts([user(1, { policy })]));
      const id = ada?.id ?? 0;
      const source = () => store.read((tx) => tx.policySource(id));
      expect(await source()).toEqual({ is_product: true, policy });
      await store.write((tx) => tx.setPolicy(id, { files: false }));
      expect(await source()).toEqual({ is_product: true, policy: { files: false } });
      await store.write((tx) => tx.setPolicy(id, {}));
      expect(await source()).toEqual({ is_product: true, policy: {} });
      const [bob] = await fixture.people("bob");
      const others = await store.read((tx) => tx.policySource(bob.id));
      expect(others).toEqual({ is_product: false, policy: null });
      await store.write((tx) => tx.setPolicy(id, policy));
      await store.write((tx) => tx.eraseAccount(ada as never, { at: START, messages: false }));
      expect(await source()).toEqual({ is_product: false, policy: null });
    },
  );

  check("a limited directory has the people whom a viewer meets", async (fixture) => {
    const { store } = fixture;
    const [ada, friend, former, stranger] = await fixture.people(
      "person_a",
      "person_b",
      "person_c",
      "person_d",
    );
    const [own, theirs] = await store.write(async (tx) => [
      await newAgent(tx, ada, "claude"),
      await newAgent(tx, friend, "claude"),
    ]);
    const chat = await fixture.group(ada, friend, former);
    await fixture.group(friend, stranger);
    await store.write(async (tx) => {
      await conversationOf(tx, chat);
      await tx.deleteMembers(chat.id, [former.id]);
    });
    const names = (accounts: readonly { username: string }[]) =>
      accounts.map(({ username }) => username);
    const viewer = { viewerId: ada.id, limit: 100 };
    const listed = async (query: object) =>
      names(await store.read((tx) => tx.listAccounts({ ...viewer, ...query })));
    const found = async (query: object) =>
      names(await store.read((tx) => tx.findAccounts({ ...viewer, query: "person", ...query })));
    const met = ["person_a", "person_a:claude", "person_b", "person_c"];
    const shared = { directory: "shared" } as const;
    expect(await listed(shared)).toEqual(met);
    expect(await listed({ ...shared, after: "person_a:claude", limit: 1 })).toEqual(["person_b"]);
    expect(await found(shared)).toEqual(met);
    const after = { name: "person_b", username: "person_b" };
    expect(await found({ ...shared, after })).toEqual(["person_c"]);
    const everybody = { usernames: [...met, "person_b:claude", "person_d"] };
    expect(await listed({ ...shared, ...everybody })).toEqual(met);
    expect(await listed({ directory: "none", ...everybody })).toEqual(met);
    expect(await listed({ directory: "none" })).toEqual(["person_a", "person_a:claude"]);
    expect(await found({ directory: "none" })).toEqual(["person_a", "person_a:claude"]);
    expect(await listed({})).toEqual([...met, "person_d"]);
    const ids = [ada, friend, former, stranger, own, theirs].map(({ id }) => id);
    const sharing = await store.read((tx) => tx.sharingAccounts(ada.id, ids));
    expect(sharing.toSorted((a, b) => a - b)).toEqual(
      [ada, friend, former, own, theirs].map(({ id }) => id).toSorted((a, b) => a - b),
    );
    expect(await store.read((tx) => tx.sharingAccounts(stranger.id, ids))).toHaveLength(3);
  });

  check("a group is found by the id of the product, with its metadata", async (fixture) => {
    const { store } = fixture;
    const [ada] = await fixture.people("ada");
    const made = { kind: "group", title: null, created_by: ada.id, at: START } as const;
    const uuid = Bun.randomUUIDv7();
    const metadata = { order: 17, größe: ["a", { b: null }] };
    const id = await store.write((tx) =>
      tx.insertConversation({ ...made, uuid, external_id: "order 17", metadata }),
    );
    const find = () => store.read((tx) => tx.chatsByExternalId(["order 17", "order 18"]));
    expect(await find()).toEqual([{ external_id: "order 17", uuid }]);
    const shared = () => store.read((tx) => tx.sharedConversation(id));
    expect(await shared()).toMatchObject({ external_id: "order 17", metadata });
    await store.write(async (tx) => {
      await tx.conversation(uuid, NOBODY);
      await tx.setChatMetadata(id, {});
    });
    expect((await shared()).metadata).toEqual({});
    const again = { ...made, uuid: Bun.randomUUIDv7(), external_id: "order 17" };
    expect(await failed(store.write((tx) => tx.insertConversation(again)))).toBe(true);
    const other = await fixture.group(ada);
    expect(await fixture.view(other, ada)).not.toHaveProperty("metadata");
  });

  check("a message keeps its metadata until it is deleted", async (fixture) => {
    const [ada] = await fixture.people("ada");
    const chat = await fixture.group(ada);
    const metadata = { kind: "shipped", parcel: { no: 4711 } };
    const sent = await fixture.send(chat, ada, "on its way", { metadata });
    const plain = await fixture.send(chat, ada, "hello");
    const views = () => fixture.store.read((tx) => tx.messageViews([sent.id, plain.id], ada.id));
    expect(sent.metadata).toEqual(metadata);
    expect(await views()).toEqual([sent, plain]);
    expect(plain).not.toHaveProperty("metadata");
    await fixture.edit(sent, "late");
    expect((await views())[0]?.metadata).toEqual(metadata);
    await fixture.remove(sent);
    expect(await views()).toEqual([plain]);
  });
}

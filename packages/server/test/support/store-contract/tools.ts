import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { KnownToolSecrets, NewToolServer } from "../../../src/store/tools.ts";
import { type Check, type Fixture, newAgent, START } from "./fixture.ts";

export function tools(check: Check) {
  const server = (owner: AccountRecord, id: string, name = id): NewToolServer => ({
    id,
    owner_id: owner.id,
    name,
    url: `https://example.com/${id}`,
    secrets: `sealed ${id}`,
    created_at: START,
  });
  const add = ({ store }: Fixture, added: NewToolServer, most = 20) =>
    store.write((tx) => tx.insertToolServer(added, most));
  const echo = {
    name: "echo",
    title: "Echo",
    description: "Repeats \u0000 what it is told.",
    input_schema: { type: "object", properties: { z: {}, a: {} } },
    fingerprint: "f1",
  };

  check("a person's tool servers are theirs, with what they offered last", async (fixture) => {
    const { store } = fixture;
    const [ada, bob] = await fixture.people("ada", "bob");
    expect(await add(fixture, server(ada, "one"))).toBe("added");
    expect(await add(fixture, server(bob, "two"))).toBe("added");
    expect(await store.read((tx) => tx.toolServers(ada.id))).toEqual([
      {
        ...server(ada, "one"),
        status: "unreachable",
        error: null,
        tools: [],
        contacted_at: null,
      },
    ]);
    const ready = { status: "ready", error: null, tools: [echo], at: START + 1 } as const;
    const { url } = server(ada, "one");
    await store.write((tx) => tx.setToolServerState({ id: "one", url }, ready));
    const failed = { status: "unauthorized", error: "It refuses.", at: START + 2 } as const;
    await store.write((tx) => tx.setToolServerState({ id: "one", url }, failed));
    const elsewhere = { id: "one", url: "https://example.com/earlier" };
    await store.write((tx) => tx.setToolServerState(elsewhere, ready));
    const found = await store.read((tx) => tx.toolServer("one"));
    expect(found).toMatchObject({ status: "unauthorized", error: "It refuses." });
    expect(found).toMatchObject({ tools: [echo], contacted_at: START + 2 });
    expect(JSON.stringify(found?.tools)).toBe(JSON.stringify([echo]));
    expect(await store.read((tx) => tx.toolServer("none"))).toBeNull();
  });

  check(
    "names of tool servers are unique per person, and their number is limited",
    async (made) => {
      const [ada, bob] = await made.people("ada", "bob");
      const outcomes = await Promise.all([
        add(made, server(ada, "1", "same"), 2),
        add(made, server(ada, "2", "same"), 2),
        add(made, server(bob, "3", "same"), 2),
      ]);
      expect(outcomes.toSorted()).toEqual(["added", "added", "taken"]);
      const more = ["4", "5", "6"].map((id) => add(made, server(ada, id), 2));
      expect((await Promise.all(more)).toSorted()).toEqual(["added", "full", "full"]);
    },
  );

  check(
    "secrets of tool servers are replaced unless they changed since they were read",
    async (made) => {
      const { store } = made;
      const [ada] = await made.people("ada");
      await add(made, server(ada, "one"));
      await add(made, { ...server(ada, "two"), secrets: null });
      const sealed = await store.read((tx) => tx.sealedToolSecrets());
      expect(sealed).toEqual([{ id: "one", owner_id: ada.id, secrets: "sealed one" }]);
      const [first] = sealed;
      if (!first) return;
      const secrets = async () => (await store.read((tx) => tx.toolServer("one")))?.secrets;
      const replace = (known: KnownToolSecrets, to: string | null) =>
        store.write((tx) => tx.replaceToolSecrets(known, to));
      expect(await replace(first, "resealed")).toBe(true);
      expect(await secrets()).toBe("resealed");
      expect(await replace(first, "too late")).toBe(false);
      expect(await secrets()).toBe("resealed");
      expect(await replace({ id: "two", secrets: null }, "first")).toBe(true);
      expect(await replace({ id: "two", secrets: null }, "too late")).toBe(false);
      expect(await replace({ id: "gone", secrets: null }, "nowhere")).toBe(false);
      expect(await replace({ id: "one", secrets: "resealed" }, null)).toBe(true);
      expect(await secrets()).toBeNull();
    },
  );

  check("a tool server is renamed unless another one of its owner has the name", async (made) => {
    const { store } = made;
    const [ada, bob] = await made.people("ada", "bob");
    await add(made, server(ada, "one"));
    await add(made, server(ada, "two"));
    await add(made, server(bob, "three"));
    const rename = (id: string, name: string) =>
      store.write((tx) => tx.renameToolServer({ id, owner_id: ada.id }, name));
    expect(await rename("one", "one")).toBe(true);
    expect(await rename("one", "two")).toBe(false);
    const both = await Promise.all([rename("one", "three"), rename("two", "three")]);
    expect(both.toSorted()).toEqual([false, true]);
    const names = (await store.read((tx) => tx.toolServers(ada.id))).map(({ name }) => name);
    expect(names.filter((name) => name === "three")).toHaveLength(1);
  });

  check(
    "an agent's grants keep their order, are replaced, and removed with their server",
    async (made) => {
      const { store } = made;
      const [ada] = await made.people("ada");
      const [claude, gpt] = await store.write(async (tx) => [
        await newAgent(tx, ada, "claude"),
        await newAgent(tx, ada, "gpt"),
      ]);
      if (!claude || !gpt) throw new Error("there are no agents");
      await add(made, server(ada, "one"));
      const grant = (server_id: string, tool: string) =>
        ({ server_id, tool, policy: "direct", fingerprint: "f1" }) as const;
      const grantsOf = (agent: AccountRecord) => store.read((tx) => tx.toolGrants(agent.id));
      const set = (agent: AccountRecord, ...grants: ReturnType<typeof grant>[]) =>
        store.write((tx) => tx.setToolGrants(agent.id, grants));
      await set(claude, grant("one", "write"), grant("one", "read"), grant("other", "read"));
      await set(gpt, grant("one", "read"));
      expect(await grantsOf(claude)).toEqual([
        grant("one", "write"),
        grant("one", "read"),
        grant("other", "read"),
      ]);
      await store.write((tx) => tx.deleteToolServer("one"));
      expect(await grantsOf(claude)).toEqual([grant("other", "read")]);
      expect(await grantsOf(gpt)).toEqual([]);
      expect(await store.read((tx) => tx.toolServers(ada.id))).toEqual([]);
      await set(claude);
      expect(await grantsOf(claude)).toEqual([]);
    },
  );

  check("nothing is left of an erased person's tool servers and grants", async (made) => {
    const { store } = made;
    const [ada] = await made.people("ada");
    const agent = await store.write((tx) => newAgent(tx, ada, "claude"));
    await add(made, server(ada, "one"));
    const grants = [
      { server_id: "one", tool: "echo", policy: "always", fingerprint: "f1" } as const,
    ];
    await store.write((tx) => tx.setToolGrants(agent.id, grants));
    await store.write((tx) => tx.eraseAccount(ada, { messages: false, at: START }));
    expect(await store.read((tx) => tx.toolServers(ada.id))).toEqual([]);
    expect(await store.read((tx) => tx.toolGrants(agent.id))).toEqual([]);
  });
}

import { describe, expect, test } from "bun:test";
import type { Account } from "@parley/protocol";
import {
  type Caller,
  failure,
  groupOf,
  pagesOf,
  people,
  signUp,
  transports,
} from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
type Query = Parameters<typeof alice.call<"getUsers">>[1];

describe.each(transports)("getMe over %s", (transport) => {
  test("returns the caller's account", async () => {
    await using caller = await alice.via(transport);
    expect(await caller.call("getMe")).toMatchObject({
      username: alice.username,
      kind: "human",
      display_name: alice.username,
      version: 0,
    });
  });
});

describe.each(transports)("getUser over %s", (transport) => {
  test("returns any account, whatever the case of the username", async () => {
    await using caller = await alice.via(transport);
    for (const username of [bob.username, bob.username.toUpperCase()]) {
      expect(await caller.call("getUser", { username })).toEqual(bob.account);
    }
  });

  test("returns agents too, whoever the owner is", async () => {
    await using caller = await alice.via(transport);
    const username = `${bob.username}:gpt`;
    const agent = await caller.call("getUser", { username });
    expect(agent).toMatchObject({ username, kind: "agent" });
  });

  test("is 404 for an unknown username", async () => {
    await using caller = await alice.via(transport);
    const failed = await failure(caller.call("getUser", { username: "nobody_at_all" }));
    expect(failed.code).toBe("not_found");
    expect(failed.message).toStartWith("not found: ");
  });
});

describe.each(transports)("getUsers over %s", (transport) => {
  const find = async (caller: Caller, query: Query) => {
    const { items } = await caller.call("getUsers", query);
    return items.map(({ username }) => username);
  };

  test("lists people and the caller's own agents", async () => {
    await using caller = await alice.via(transport);
    const found = (await pagesOf((place) => caller.call("getUsers", place))).flat();
    const names = found.map(({ username }) => username);
    const own = [`${alice.username}:claude`, `${alice.username}:gpt`];
    expect(names).toEqual(expect.arrayContaining([alice, bob, carol].map((each) => each.username)));
    const agents = found.filter(({ kind }) => kind === "agent").map(({ username }) => username);
    expect(agents).toEqual(own);
    expect(new Set(names).size).toBe(names.length);
  });

  test("finds people by a prefix of their username or of a word of their display name", async () => {
    const person = await signUp(server.url, "grace");
    await person.call("updateMe", { display_name: "Grace Brewster Hopper" });
    await using caller = await alice.via(transport);
    const { username } = person;
    for (const query of [username, username.toUpperCase(), "hopp", "Brewster H"]) {
      expect(await find(caller, { query })).toContain(username);
    }
    for (const query of ["ewster", "%", "_", "hopper grace"]) {
      expect(await find(caller, { query })).not.toContain(username);
    }
  });

  test("looks up the given usernames", async () => {
    await using caller = await alice.via(transport);
    const usernames = [
      bob.username,
      alice.username.toUpperCase(),
      "nobody_at_all",
      `${alice.username}:claude`,
      `${bob.username}:claude`,
    ];
    const found = await find(caller, { usernames });
    expect(found).toEqual([alice.username, `${alice.username}:claude`, bob.username].toSorted());
    expect(await find(caller, { usernames: [] })).toEqual([]);
  });

  test("pages through all accounts without gaps or repeats", async () => {
    await using caller = await alice.via(transport);
    const usernames = [alice, bob, carol].map(({ username }) => username);
    const pages = await pagesOf((place) =>
      caller.call("getUsers", { usernames, limit: 2, ...place }),
    );
    expect(pages.map((page) => page.map(({ username }) => username))).toEqual([
      usernames.slice(0, 2),
      usernames.slice(2),
    ]);
  });

  test("refuses a forged cursor", async () => {
    await using caller = await alice.via(transport);
    const failed = await failure(find(caller, { cursor: "nonsense" }));
    expect(failed.parameters?.fields).toHaveProperty("cursor");
  });
});

describe.each(transports)("updateMe over %s", (transport) => {
  test("changes the display name for everyone", async () => {
    const person = await signUp(server.url, "changing");
    const chat = await groupOf(person, bob);
    await using before = await person.connect();
    await using caller = await person.via(transport);
    const account = {
      ...person.account,
      display_name: "New Name 🎈",
      version: expect.any(Number),
    };
    expect(await caller.call("updateMe", { display_name: " New Name 🎈 " })).toEqual({
      ...account,
      presence: "visible",
    });
    expect(await bob.call("getUser", { username: person.username })).toEqual(account);
    expect((await bob.call("getChat", { chat_id: chat.id })).participants).toContainEqual(account);
    // On several nodes, the node of another socket learns it a little later.
    await before.event("events.accountUpdated", ({ username }) => username === person.username);
    for (const sender of [before, caller]) {
      const sent = await sender.call("sendMessage", { chat_id: chat.id, content: "hello" });
      expect(sent.sender).toEqual(account);
    }
    await using after = await person.connect();
    expect((await after.event("events.hello")).params).toEqual(account);
  });

  test("notifies the caller's clients and everyone who shares a conversation", async () => {
    const person = await signUp(server.url, "changing");
    await groupOf(person, bob);
    await using caller = await person.via(transport);
    await using own = await person.connect();
    await using reader = await bob.connect();
    await using outsider = await carol.connect();
    const { presence: _, ...params } = await caller.call("updateMe", { display_name: "New" });
    const isTheirs = ({ username }: Account) => username === person.username;
    for (const socket of [own, reader]) {
      expect((await socket.event("events.accountUpdated", isTheirs)).params).toEqual(params);
    }
    expect(await outsider.settledEvents("events.accountUpdated", isTheirs)).toEqual([]);
  });

  test("notifies each client once, however many conversations it shares", async () => {
    const person = await signUp(server.url, "changing");
    await groupOf(person, bob);
    await groupOf(bob, person);
    await person.call("startChat", { usernames: [bob.username] });
    await using caller = await person.via(transport);
    await using own = await person.connect();
    await using reader = await bob.connect();
    for (const display_name of ["First", "Second"]) {
      await caller.call("updateMe", { display_name });
      for (const socket of [own, reader]) {
        await socket.event(
          "events.accountUpdated",
          (params) => params.display_name === display_name,
        );
      }
    }
    const isTheirs = ({ username }: Account) => username === person.username;
    for (const socket of [own, reader]) {
      const events = await socket.settledEvents("events.accountUpdated", isTheirs);
      expect(events.map(({ params }) => params.display_name)).toEqual(["First", "Second"]);
    }
  });

  test("refuses a name that is empty, too long or has two lines", async () => {
    await using caller = await alice.via(transport);
    for (const display_name of ["", " ", "x".repeat(65), "a\nb", "a\u0000b"]) {
      const failed = await failure(caller.call("updateMe", { display_name }));
      expect(failed.parameters?.fields).toHaveProperty("display_name");
    }
    expect(await alice.call("getMe")).toMatchObject(alice.account);
  });
});

import { beforeAll, describe, expect, test } from "bun:test";
import { Backend } from "@parley/testkit/backend.ts";
import { groupOf, type Person, people, say } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { type Client, type ClientOptions, createClient, isCallError } from "../src/index.ts";
import { contents, delivered, online, type TestClient, until } from "./support/clients.ts";
import { equalsServer, loadAll } from "./support/view.ts";

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
function clientWith(options: ClientOptions): TestClient {
  const pauses = { min: 2, max: 20 };
  const client = createClient({ url: server.url, reconnectMs: pauses, ...options });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

/** Tokens of a person, each from a sign-in of its own; `end` revokes the latest. */
function tokensOf(person: Person) {
  const given: string[] = [];
  const plain = createClient({ url: server.url });
  const { username } = person;
  const password = "correct horse battery";
  return {
    given,
    async next() {
      const { access_token } = await plain.signIn({ username, password });
      given.push(access_token);
      return access_token;
    },
    async end() {
      const last = createClient({ url: server.url, token: given.at(-1) ?? "" });
      await last.signOut();
    },
  };
}

/** A client that shows a conversation with one message. */
async function connectedClient(person: Person, other: Person, options: ClientOptions) {
  const chat = await groupOf(person, other);
  await say(other, chat, "first");
  const client = clientWith(options);
  await client.connect();
  await client.model.openChat(chat.id);
  return { client, chat, [Symbol.dispose]: () => client.close() };
}

/** Records every status and every first message shown from now on. */
function watched(client: Client, chatId: string) {
  const statuses = new Set<string>();
  const firsts = new Set<string | undefined>();
  client.model.watch("status", () => statuses.add(client.status));
  client.model.watch(`messages:${chatId}`, () => firsts.add(contents(client, chatId)[0]));
  return { statuses, firsts };
}

describe("with getToken", () => {
  test("a new token is requested when the service rejects one; the model stays and the outbox waits", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = tokensOf(ann);
    const held = Promise.withResolvers<void>();
    const getToken = async () => {
      if (tokens.given.length > 0) await held.promise;
      return tokens.next();
    };
    using connected = await connectedClient(ann, bob, { getToken });
    const { client, chat } = connected;
    expect(client.token).toBe(tokens.given[0] ?? "");
    const { statuses, firsts } = watched(client, chat.id);

    await tokens.end();
    await until(client, "status", () => client.status === "authorizing");
    client.model.send(chat.id, "written without a token");
    expect(contents(client, chat.id)).toEqual(["first", "written without a token"]);
    await say(bob, chat, "second");
    held.resolve();
    await delivered(client, chat.id);
    await online(client);
    expect(client.token).toBe(tokens.given[1] ?? "");
    expect(statuses).not.toContain("signed_out");
    expect([...firsts]).toEqual(["first"]);
    await loadAll(client);
    await equalsServer(client, ann);
  });

  test("getToken is called again if it rejects, times out or returns the same token", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = tokensOf(ann);
    const answers: (() => Promise<string>)[] = [
      () => Promise.reject(new Error("the sign-on service is down")),
      () => new Promise(() => {}),
      async () => tokens.given[0] ?? "",
    ];
    let calls = 0;
    const getToken = () => {
      const answer = calls++ > 0 && answers.shift();
      return answer ? answer() : tokens.next();
    };
    using connected = await connectedClient(ann, bob, { getToken, timeoutMs: 3000 });
    const { client, chat } = connected;
    await tokens.end();
    await until(client, "status", () => client.status === "authorizing");
    client.model.send(chat.id, "sent in the end");
    await delivered(client, chat.id);
    await online(client);
    expect(answers).toEqual([]);
  });

  test("a token that is revoked while disconnected loses nothing", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = tokensOf(ann);
    await using proxy = await FaultyProxy.to(server.url);
    using connected = await connectedClient(ann, bob, {
      url: proxy.url,
      getToken: tokens.next,
    });
    const { client, chat } = connected;
    const { statuses } = watched(client, chat.id);
    for (let round = 0; round < 5; round++) {
      proxy.refuse(true);
      proxy.cut();
      await until(client, "status", () => client.status === "offline");
      client.model.send(chat.id, `mine ${round}`);
      await say(bob, chat, `theirs ${round}`);
      await tokens.end();
      proxy.reset();
      await delivered(client, chat.id);
      await online(client);
    }
    expect(contents(client, chat.id)).toHaveLength(11);
    expect(statuses).not.toContain("signed_out");
    await loadAll(client);
    await equalsServer(client, ann);
  });

  test("calls over HTTP get a token first, and a new one after a rejection", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const chat = await groupOf(ann, bob);
    const tokens = tokensOf(ann);
    using client = clientWith({ getToken: tokens.next });
    expect(await client.getMe()).toMatchObject(ann.account);
    await tokens.end();
    client.model.send(chat.id, "sent");
    expect(await client.getMe()).toMatchObject(ann.account);
    const isSent = () => client.model.get(`messages:${chat.id}`).items.length === 0;
    await until(client, `messages:${chat.id}`, isSent);
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ content }) => content)).toEqual(["sent"]);
    expect(tokens.given).toHaveLength(2);
  });

  test("a call waits for a token until its timeout, and a closed client requests none", async () => {
    let calls = 0;
    const client = clientWith({
      timeoutMs: 50,
      getToken: () => {
        calls++;
        return Promise.reject(new Error("no"));
      },
    });
    const failed = await client.getMe().catch((error: unknown) => error);
    expect(isCallError(failed) && failed.code).toBe("unauthorized");
    expect(client.status).toBe("authorizing");
    const connecting = client.connect().catch((error: Error) => error.message);
    client.close();
    expect(await connecting).toBe("the client was closed");
    const before = calls;
    // Enough time for another request.
    await people(server.url, "ann");
    expect(calls).toBe(before);
  });

  test("a token of another account replaces the model", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = [tokensOf(ann), tokensOf(bob)] as const;
    let calls = 0;
    const getToken = () => (calls++ === 0 ? tokens[0].next() : tokens[1].next());
    using connected = await connectedClient(ann, bob, { getToken });
    const { client } = connected;
    const alone = await groupOf(ann);
    await until(client, "chats", () => client.model.get("chats").includes(alone.id));
    await tokens[0].end();
    await until(client, "me", () => client.model.get("me")?.username === bob.username);
    await online(client);
    expect(client.model.get("chats")).not.toContain(alone.id);
  });

  test("calls made for one account are not repeated with the token of another", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = [tokensOf(ann), tokensOf(bob)] as const;
    const held = Promise.withResolvers<void>();
    const getToken = async () => {
      if (tokens[0].given.length === 0) return tokens[0].next();
      await held.promise;
      return tokens[1].next();
    };
    using connected = await connectedClient(ann, bob, { getToken });
    const { client, chat } = connected;
    const message = client.model.get(`messages:${chat.id}`).items[0];
    await tokens[0].end();
    await until(client, "status", () => client.status === "authorizing");
    const sent = client.sendMessage({ chat_id: chat.id, content: "of ann" });
    const reacted = client.model.react(message?.id ?? "", "👍");
    const refusals = Promise.allSettled([sent, reacted]);
    held.resolve();
    for (const outcome of await refusals) {
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "unauthorized" } });
    }
    await until(client, "me", () => client.model.get("me")?.username === bob.username);
    await online(client);
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ content, reactions }) => [content, reactions])).toEqual([["first", []]]);
  });
});

/** What the backend of a product gives its page: tokens of `issueToken`. */
function issuedTokens({ username }: Person) {
  const backend = new Backend(server.url);
  const given: string[] = [];
  return {
    given,
    async next() {
      const { access_token } = await backend.call("issueToken", { username, expires_in: 60 });
      given.push(access_token);
      return access_token;
    },
    /** A token that ends by itself after the given time: `issueToken` issues none that short. */
    async short(ms: number) {
      const token = await this.next();
      using db = databaseOf(server);
      db.run("UPDATE sessions SET expires_at = ? WHERE token_hash = ?", [
        Date.now() + ms,
        hashOf(token),
      ]);
      return token;
    },
    revoke: () => backend.call("revokeTokens", { username }),
  };
}

const hashOf = (token: string) => new Bun.CryptoHasher("sha256").update(token).digest("hex");

describe("with getToken and tokens of issueToken", () => {
  test("getToken is called at the start, and again when a token ends by itself", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = issuedTokens(ann);
    const held = Promise.withResolvers<void>();
    const getToken = async () => {
      if (tokens.given.length === 0) return tokens.short(8000);
      await held.promise;
      return tokens.next();
    };
    using connected = await connectedClient(ann, bob, { getToken });
    const { client, chat } = connected;
    expect(tokens.given).toHaveLength(1);
    const { statuses, firsts } = watched(client, chat.id);

    await until(client, "status", () => client.status === "authorizing");
    client.model.send(chat.id, "written without a token");
    await say(bob, chat, "second");
    expect(contents(client, chat.id)).toEqual(["first", "written without a token"]);
    held.resolve();
    await delivered(client, chat.id);
    await online(client);
    expect(tokens.given).toHaveLength(2);
    expect(client.token).toBe(tokens.given[1] ?? "");
    expect(statuses).not.toContain("signed_out");
    expect([...firsts]).toEqual(["first"]);
    await loadAll(client);
    await equalsServer(client, ann);
  });

  test("getToken is called again when the product revokes the tokens", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const tokens = issuedTokens(ann);
    using connected = await connectedClient(ann, bob, { getToken: () => tokens.next() });
    const { client, chat } = connected;
    const { statuses } = watched(client, chat.id);
    await tokens.revoke();
    client.model.send(chat.id, "sent with the next one");
    await delivered(client, chat.id);
    await online(client);
    expect(tokens.given).toHaveLength(2);
    expect(statuses).not.toContain("signed_out");
  });

  test("a token that has ended before it is used is replaced, and loses nothing", async () => {
    const [ann, bob] = await people(server.url, "ann", "bob");
    const chat = await groupOf(ann, bob);
    const tokens = issuedTokens(ann);
    const getToken = () => (tokens.given.length < 2 ? tokens.short(-1) : tokens.next());
    using client = clientWith({ getToken });
    client.model.send(chat.id, "sent in the end");
    await client.connect();
    await client.model.openChat(chat.id);
    await delivered(client, chat.id);
    expect(tokens.given).toHaveLength(3);
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ content }) => content)).toEqual(["sent in the end"]);
  });
});

import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { agentOf, failure, groupOf, type Person, say, signUp } from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { rawServer } from "@parley/testkit/raw-server.ts";
import { hang, startReceiver } from "@parley/testkit/receiver.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import { Webhook } from "standardwebhooks";

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_PRIVATE_ADDRESSES: "allow",
  PARLEY_OPERATORS: "olga",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);
const olga = await operatorAt(server, "olga");
const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
const newMessages = ["events.messageNew"];

/** A webhook for the new messages of one conversation, deleted with the test. */
async function hookFor(chat_id: string, url: string, events = newMessages) {
  const made = await backend.call("createWebhook", { url, events, chat_id });
  const remove = async () => void (await backend.post("deleteWebhook", { webhook_id: made.id }));
  return { ...made, [Symbol.asyncDispose]: remove };
}

const deliveriesOf = async ({ id }: { id: string }) =>
  (await backend.call("getDeliveries", { webhook_id: id })).items;

/** Lets time pass until the latest delivery of a webhook is as expected. */
async function latestDelivery(hook: { id: string }, status: string) {
  let [latest] = await deliveriesOf(hook);
  const isAsExpected = async () => {
    [latest] = await deliveriesOf(hook);
    return latest?.status === status;
  };
  await server.moveClockUntil(isAsExpected, `the latest delivery is ${status}`);
  return latest as NonNullable<typeof latest>;
}

/** Lets time pass until a receiver has got so many requests. */
const retried = (receiver: { received: unknown[] }, count: number) =>
  server.moveClockUntil(() => receiver.received.length >= count, `request ${count}`);

describe("a webhook with a name", () => {
  const create = (name: string | undefined, url: string, more: object = {}) =>
    backend.call("createWebhook", { ...(name && { name }), url, events: newMessages, ...more });
  const listed = async (name: string) =>
    (await backend.call("getWebhooks")).items.filter((each) => each.name === name);

  // None of them is sent what other tests do.
  afterEach(async () => {
    for (const { id, url } of (await backend.call("getWebhooks")).items) {
      if (url.startsWith("https://192.0.2.1/")) {
        await backend.call("deleteWebhook", { webhook_id: id });
      }
    }
  });

  test("is created once, also by concurrent calls, and returned with its secret", async () => {
    const url = "https://192.0.2.1/parley";
    const made = await Promise.all(Array.from({ length: 4 }, () => create("shop", url)));
    expect(new Set(made.map(({ id, secret }) => `${id} ${secret}`)).size).toBe(1);
    expect(await listed("shop")).toMatchObject([{ id: made[0]?.id, url, name: "shop" }]);
  });

  test("is changed by a call with another address or other events", async () => {
    const { id, secret } = await create("moved", "https://192.0.2.1/old");
    const url = "https://192.0.2.1/new";
    const events = ["events.messageComplete"];
    expect(await create("moved", url, { events })).toEqual({ id, secret });
    expect(await listed("moved")).toMatchObject([{ id, url, events }]);
    const chat = await groupOf(alice, bob);
    const other = create("moved", url, { chat_id: chat.id });
    expect((await failure(other)).code).toBe("conflict");
  });

  test("stays disabled when the call is repeated", async () => {
    const url = "https://192.0.2.1/parley";
    const { id } = await create("paused", url);
    await backend.call("setWebhook", { webhook_id: id, disabled: true });
    await create("paused", url);
    expect(await listed("paused")).toMatchObject([{ id, disabled: "manual" }]);
  });

  test("of an operator is another one than that of a service key", async () => {
    const chat = await groupOf(olga);
    const hook = { name: "both", url: "https://192.0.2.1/parley", events: newMessages };
    const own = await olga.call("createWebhook", { ...hook, chat_id: chat.id });
    const others = await create("both", hook.url);
    expect(others.id).not.toBe(own.id);
    expect(await listed("both")).toHaveLength(2);
  });

  test("differs from one without a name, of which every call makes another", async () => {
    const url = "https://192.0.2.1/parley";
    const [one, other] = [await create(undefined, url), await create(undefined, url)];
    expect(one.id).not.toBe(other.id);
  });
});

describe("a webhook", () => {
  test("receives the frames of events, in order, signed as Standard Webhooks specifies", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    const events = ["events.messageNew", "events.messageEdited", "events.reactionAdded"];
    await using hook = await hookFor(chat.id, receiver.url, events);
    await using socket = await bob.connect();
    const sent = await say(alice, chat, "hello, wörld");
    await alice.call("editMessage", { message_id: sent.id, content: "hello" });
    await alice.call("addReaction", { message_id: sent.id, emoji: "👍" });
    await receiver.has(3);
    const frames = await Promise.all(
      (["events.messageEdited", "events.reactionAdded"] as const).map((name) =>
        socket.event(name, () => true),
      ),
    );
    const [first, ...others] = receiver.received;
    expect(first?.data).toMatchObject({
      method: "events.messageNew",
      params: { id: sent.id, sender: { username: alice.username } },
      at: { conversation_id: chat.id, seq: sent.seq },
    });
    expect(others.slice(0, 2).map(({ data }) => data)).toEqual(frames as never[]);
    const verifier = new Webhook(hook.secret);
    for (const { headers, body, data } of receiver.received) {
      expect(verifier.verify(body, headers)).toMatchObject({ type: data.method, data });
      expect(() => verifier.verify(`${body} `, headers)).toThrow();
    }
    expect(hook.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  });

  test("never receives whom a person has blocked", async () => {
    await using receiver = startReceiver();
    const [carol, dora] = [await signUp(server.url, "carol"), await signUp(server.url, "dora")];
    const { id } = await backend.call("createWebhook", { url: receiver.url, events: [] });
    await carol.call("blockUser", { username: dora.username });
    await carol.call("updateMe", { display_name: "Carol the Second" });
    const renamed = () => receiver.received.some(({ body }) => body.includes("Carol the Second"));
    await until(renamed, "the new name");
    expect(receiver.received.map(({ data }) => data.method)).not.toContain("events.blocksUpdated");
    await backend.call("deleteWebhook", { webhook_id: id });
    const named = { url: receiver.url, events: ["events.blocksUpdated"] };
    expect((await failure(backend.call("createWebhook", named))).code).toBe("bad_request");
  });

  test("never receives how a person sees a conversation", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    await using _ = await hookFor(chat.id, receiver.url, []);
    await alice.call("setChatState", { chat_id: chat.id, archived: true });
    await alice.call("markUnread", { chat_id: chat.id, seq: 0 });
    await alice.call("clearChat", { chat_id: chat.id });
    await say(bob, chat, "next");
    await receiver.has(1);
    expect(receiver.received.map(({ data }) => data.method)).toEqual(["events.messageNew"]);
    const named = { url: receiver.url, events: ["events.chatStateUpdated"] };
    expect((await failure(backend.call("createWebhook", named))).code).toBe("bad_request");
  });

  test("never receives which messages a person has hidden for themselves", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    const { id } = await say(bob, chat, "hidden for Alice");
    await using _ = await hookFor(chat.id, receiver.url, [
      "events.messageNew",
      "events.messageDeleted",
    ]);
    await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [id] });
    const next = await say(bob, chat, "next");
    await receiver.has(1);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [next.id] });
    await receiver.has(2);
    const received = receiver.received.map(({ data }) => data.params);
    expect(received).toMatchObject([{ id: next.id }, { ids: [next.id] }]);
  });

  test("receives only the events and the conversation that it is for", async () => {
    await using receiver = startReceiver();
    const [chat, other] = [await groupOf(alice, bob), await groupOf(alice, bob)];
    await using _ = await hookFor(chat.id, receiver.url);
    await say(alice, other, "elsewhere");
    const { id } = await say(alice, chat, "first");
    await alice.call("addReaction", { message_id: id, emoji: "👍" });
    await alice.call("updateMe", { display_name: "Alice" });
    await say(alice, chat, "last");
    await receiver.has(2);
    expect(receiver.contents()).toEqual(["first", "last"]);
  });

  test("for all conversations receives changes of accounts too", async () => {
    await using receiver = startReceiver();
    const events = ["events.accountUpdated"];
    const { id } = await backend.call("createWebhook", { url: receiver.url, events });
    // Not the settings of agents, which are their owner's.
    await alice.call("setAgentLimits", { provider: "claude", daily_tokens: 1000 });
    await alice.call("updateMe", { display_name: "Alice Two" });
    await until(
      () => receiver.received.some(({ data }) => data.params.display_name === "Alice Two"),
      "the new name",
    );
    const usernames = receiver.received.map(({ data }) => data.params.username);
    expect(usernames).not.toContain(agentOf(alice));
    await backend.call("deleteWebhook", { webhook_id: id });
  });

  test("receives a new name once, also when it is for one conversation", async () => {
    await using one = startReceiver();
    await using all = startReceiver();
    const person = await signUp(server.url, "renamed");
    const chat = await groupOf(person, bob);
    await groupOf(person, alice);
    const events = ["events.accountUpdated"];
    await using _ = await hookFor(chat.id, one.url, events);
    const { id } = await backend.call("createWebhook", { url: all.url, events });
    for (const display_name of ["First name", "Second name"]) {
      await person.call("updateMe", { display_name });
    }
    for (const { received } of [one, all]) {
      const names = () =>
        received
          .filter(({ data }) => data.params.username === person.username)
          .map(({ data }) => data.params.display_name);
      await until(() => names().includes("Second name"), "the second name");
      expect(names()).toEqual(["First name", "Second name"]);
    }
    await backend.call("deleteWebhook", { webhook_id: id });
  });

  test("receives nothing from before its creation or after its deletion", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    // Shows what was handled: on several nodes, that follows within a second.
    await using observer = startReceiver();
    await using _ = await hookFor(chat.id, observer.url);
    await say(alice, chat, "before");
    await observer.has(1);
    const hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "during");
    await receiver.has(1);
    await hook[Symbol.asyncDispose]();
    await say(alice, chat, "after");
    await observer.has(3);
    await using later = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "again");
    await receiver.has(2);
    expect(receiver.contents()).toEqual(["during", "again"]);
    expect((await deliveriesOf(later)).map(({ chat_id }) => chat_id)).toEqual([chat.id]);
  });
});

describe("a receiver", () => {
  test("that fails for a while gets everything in order, and holds up no other conversation", async () => {
    const chats = [await groupOf(alice, bob), await groupOf(alice, bob)] as const;
    let fails = true;
    const isFailing = (params: object) =>
      fails && (params as { conversation_id: string }).conversation_id === chats[0].id;
    await using receiver = startReceiver(({ data }) =>
      isFailing(data.params) ? new Response(null, { status: 500 }) : new Response("ok"),
    );
    const { id } = await backend.call("createWebhook", { url: receiver.url, events: newMessages });
    for (const text of ["a1", "a2", "a3"]) await say(alice, chats[0], text);
    for (const text of ["b1", "b2", "b3"]) await say(alice, chats[1], text);
    const contents = (letter: string) =>
      receiver.contents().filter((text) => text.startsWith(letter));
    await until(() => contents("b").length === 3 && contents("a").length > 0, "the other one");
    expect(contents("b")).toEqual(["b1", "b2", "b3"]);
    expect(new Set(contents("a"))).toEqual(new Set(["a1"]));
    const pendingOf = async () =>
      (await backend.call("getDeliveries", { webhook_id: id, status: "pending" })).items;
    // The receiver has answered; the server may not have recorded that yet.
    const isRecorded = async () => {
      const pending = await pendingOf();
      return pending.length <= 3 && pending.at(-1)?.latest_attempts.length !== 0;
    };
    await until(isRecorded, "the attempts are recorded");
    const pending = await pendingOf();
    expect(pending).toHaveLength(3);
    expect(pending.at(-1)?.latest_attempts[0]).toMatchObject({
      status: 500,
      error: "the response has the status 500",
    });
    fails = false;
    await server.moveClockUntil(() => contents("a").includes("a3"), "the rest");
    const firsts = contents("a").filter((text, place, all) => all.indexOf(text) === place);
    expect(firsts).toEqual(["a1", "a2", "a3"]);
    expect(contents("a").slice(-2)).toEqual(["a2", "a3"]);
    const ids = receiver.received
      .filter(({ data }) => data.params.content === "a1")
      .map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
    await backend.call("deleteWebhook", { webhook_id: id });
  });

  test("that hangs is given up after ten seconds, while others are served", async () => {
    await using receiver = startReceiver(({ data }) =>
      data.params.content === "slow" && receiver.received.length === 1
        ? hang()
        : new Response("ok"),
    );
    await using quick = startReceiver();
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await using _ = await hookFor(chat.id, quick.url);
    await say(alice, chat, "slow");
    await quick.has(1);
    await receiver.has(1);
    expect(receiver.received).toHaveLength(1);
    await server.moveClock(10_000);
    const { latest_attempts } = await latestDelivery(hook, "delivered");
    expect(latest_attempts).toMatchObject([
      { status: null, error: "the request timed out" },
      { status: 200, error: null },
    ]);
    expect(latest_attempts[0]?.duration_ms).toBeGreaterThan(9000);
  });

  test("that redirects has failed: the redirect is not followed", async () => {
    await using target = startReceiver();
    await using receiver = startReceiver(() => Response.redirect(target.url, 307));
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "hello");
    await retried(receiver, 2);
    expect(target.received).toEqual([]);
    receiver.answer(() => new Response(null, { status: 204 }));
    const { latest_attempts } = await latestDelivery(hook, "delivered");
    expect(latest_attempts[0]).toMatchObject({
      status: 307,
      error: "the response is a redirect, which is not followed",
    });
  });

  test("that speaks no HTTP has failed, and its delivery waits", async () => {
    await using raw = await rawServer((socket) => socket.end("what?\r\n\r\n"));
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, `http://127.0.0.1:${raw.port}/`);
    await say(alice, chat, "hello");
    await retried(raw, 2);
    const [delivery] = await deliveriesOf(hook);
    expect(delivery).toMatchObject({ status: "pending" });
    expect(delivery?.latest_attempts[0]).toMatchObject({ status: null });
    expect(raw.received[0]?.text).toMatch(/^POST \/ HTTP\/1.1\r\n/);
  });

  test("that answers 410 disables its webhook; enabling it resumes what waits", async () => {
    await using receiver = startReceiver(() => new Response(null, { status: 410 }));
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "one");
    const shown = async () => {
      const { items } = await backend.call("getWebhooks");
      return items.find(({ id }) => id === hook.id);
    };
    await until(async () => (await shown())?.disabled === "gone", "the webhook is disabled");
    const { items } = await backend.call("getAuditLog", { action: "webhook_disabled", limit: 1 });
    expect(items).toMatchObject([{ details: { webhook: hook.id } }]);
    await say(alice, chat, "missed");
    receiver.answer(() => new Response("ok"));
    // The event is in the log, and passed over, before the webhook is enabled.
    await using second = startReceiver();
    await using other = await hookFor(chat.id, second.url);
    await say(alice, chat, "for the other");
    await latestDelivery(other, "delivered");
    const enabled = await backend.call("setWebhook", { webhook_id: hook.id, disabled: false });
    expect(enabled.disabled).toBeNull();
    await latestDelivery(hook, "delivered");
    expect(receiver.contents()).toEqual(["one", "one"]);
  });
});

describe("a delivery", () => {
  test("that ended is sent again with the same id by replayDelivery", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "hello");
    const delivery = await latestDelivery(hook, "delivered");
    await backend.call("replayDelivery", { delivery_id: delivery.id });
    await receiver.has(2);
    const [first, second] = receiver.received;
    expect(second?.headers["webhook-id"]).toBe(delivery.message_id);
    expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
    expect(second?.body).toBe(first?.body);
    new Webhook(hook.secret).verify(second?.body ?? "", second?.headers ?? {});
    const unknown = backend.call("replayDelivery", { delivery_id: 999_999_999 });
    expect(await failure(unknown)).toMatchObject({ status: 404 });
  });

  test("is replayed as often as asked, once its webhook is enabled", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "hello");
    const { id: delivery_id } = await latestDelivery(hook, "delivered");
    await backend.call("setWebhook", { webhook_id: hook.id, disabled: true });
    await backend.call("replayDelivery", { delivery_id });
    const again = backend.call("replayDelivery", { delivery_id });
    expect(await failure(again)).toMatchObject({ status: 409 });
    await backend.call("setWebhook", { webhook_id: hook.id, disabled: false });
    await latestDelivery(hook, "delivered");
    await backend.call("replayDelivery", { delivery_id });
    await receiver.has(3);
    expect(receiver.contents()).toEqual(["hello", "hello", "hello"]);
    const ids = receiver.received.map(({ headers }) => headers["webhook-id"]);
    expect(new Set(ids).size).toBe(1);
    expect(await deliveriesOf(hook)).toHaveLength(1);
    const { items } = await backend.call("getAuditLog", { limit: 1 });
    expect(items).toMatchObject([{ action: "webhook_replayed", details: { webhook: hook.id } }]);
    await hook[Symbol.asyncDispose]();
    const deleted = backend.call("replayDelivery", { delivery_id });
    expect(await failure(deleted)).toMatchObject({ status: 404 });
  });

  test("that has not ended cannot be replayed", async () => {
    await using receiver = startReceiver(() => new Response(null, { status: 503 }));
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    await say(alice, chat, "hello");
    const { id } = await latestDelivery(hook, "pending");
    const replay = backend.call("replayDelivery", { delivery_id: id });
    expect(await failure(replay)).toMatchObject({ status: 409 });
  });

  test("of a message that was deleted since has no text of it", async () => {
    await using receiver = startReceiver(() => new Response(null, { status: 500 }));
    const chat = await groupOf(alice, bob);
    await using hook = await hookFor(chat.id, receiver.url);
    const events = ["events.messageNew", "events.messageDeleted"];
    await using both = await hookFor(chat.id, receiver.url, events);
    const { id } = await say(alice, chat, "secret");
    await receiver.has(2);
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
    const before = receiver.received.length;
    // An attempt that had read the message before may still be on its way, one of each webhook.
    receiver.answer(({ data }) =>
      data.method === "events.messageNew"
        ? new Response(null, { status: 500 })
        : new Response("ok"),
    );
    await latestDelivery(hook, "skipped");
    await latestDelivery(both, "delivered");
    const later = receiver.received.slice(before + 2);
    expect(later.map(({ body }) => body).join()).not.toContain("secret");
    expect(receiver.received.at(-1)?.data).toMatchObject({
      method: "events.messageDeleted",
      params: { ids: [id] },
    });
  });
});

describe("a webhook of an operator", () => {
  const hookOf = (chat: { id: string }, url: string) =>
    olga.call("createWebhook", { url, events: newMessages, chat_id: chat.id });
  const shown = async (id: string) =>
    (await backend.call("getWebhooks")).items.find((each) => each.id === id);
  const isDisabled = (id: string) =>
    server.moveClockUntil(
      async () => (await shown(id))?.disabled === "creator",
      "the webhook is disabled",
    );

  test("is disabled once they have left, and works again once they are back", async () => {
    await using receiver = startReceiver();
    const chat = await groupOf(bob, olga);
    const { id } = await hookOf(chat, receiver.url);
    expect(await shown(id)).toMatchObject({ created_by: "olga", disabled: null });
    await say(bob, chat, "before");
    const { id: delivery_id } = await latestDelivery({ id }, "delivered");
    await olga.call("leaveChat", { chat_id: chat.id });
    await say(bob, chat, "private");
    await isDisabled(id);
    const { items } = await backend.call("getAuditLog", { action: "webhook_disabled", limit: 1 });
    expect(items).toMatchObject([{ account: "olga", details: { webhook: id, reason: "creator" } }]);
    for (const caller of [olga, backend]) {
      const enable = caller.call("setWebhook", { webhook_id: id, disabled: false });
      expect(await failure(enable)).toMatchObject({ status: 409 });
      const replay = caller.call("replayDelivery", { delivery_id });
      expect(await failure(replay)).toMatchObject({ status: 409 });
    }
    await bob.call("addChatMembers", { chat_id: chat.id, usernames: ["olga"] });
    await backend.call("setWebhook", { webhook_id: id, disabled: false });
    await say(bob, chat, "back");
    await receiver.has(2);
    expect(receiver.contents()).toEqual(["before", "back"]);
    await olga.call("deleteWebhook", { webhook_id: id });
  });

  test("is not sent what is still pending when they leave", async () => {
    await using receiver = startReceiver(() => new Response(null, { status: 500 }));
    const chat = await groupOf(bob, olga);
    const { id } = await hookOf(chat, receiver.url);
    await say(bob, chat, "private");
    // The next attempt follows after two seconds or more.
    await retried(receiver, 3);
    await olga.call("leaveChat", { chat_id: chat.id });
    const before = receiver.received.length;
    receiver.answer(() => new Response("ok"));
    await isDisabled(id);
    expect(receiver.received).toHaveLength(before);
    expect(await deliveriesOf({ id })).toMatchObject([{ status: "pending" }]);
    await olga.call("deleteWebhook", { webhook_id: id });
  });

  test("keeps its address, unless they or a service key change it", async () => {
    const chat = await groupOf(bob, olga);
    const url = "https://192.0.2.1/hook";
    await using ofKey = await hookFor(chat.id, url);
    const redirect = olga.call("setWebhook", { webhook_id: ofKey.id, url });
    expect(await failure(redirect)).toMatchObject({ status: 403 });
    const { id: webhook_id } = await hookOf(chat, url);
    await olga.call("setWebhook", { webhook_id, url });
    await backend.call("setWebhook", { webhook_id, url });
    await olga.call("deleteWebhook", { webhook_id });
  });
});

describe("webhooks are managed", () => {
  test("by operators, for conversations of their own only", async () => {
    await using receiver = startReceiver();
    const [chat, other] = [await groupOf(olga, bob), await groupOf(alice, bob)];
    const create = (chat_id?: string) =>
      olga.call("createWebhook", {
        url: receiver.url,
        events: newMessages,
        ...(chat_id && { chat_id }),
      });
    expect(await failure(create(other.id))).toMatchObject({ status: 403 });
    expect(await failure(create())).toMatchObject({ status: 403 });
    const { id } = await create(chat.id);
    await say(bob, chat, "hello");
    await receiver.has(1);
    await using foreign = await hookFor(other.id, receiver.url);
    const redirect = olga.call("setWebhook", { webhook_id: foreign.id, url: receiver.url });
    expect(await failure(redirect)).toMatchObject({ status: 403 });
    await olga.call("setWebhook", { webhook_id: foreign.id, disabled: true });
    await olga.call("deleteWebhook", { webhook_id: id });
    expect(await failure(olga.call("deleteWebhook", { webhook_id: id }))).toMatchObject({
      status: 404,
    });
  });

  test("by nobody else than operators and service keys", async () => {
    expect(await failure(alice.call("getWebhooks"))).toMatchObject({ status: 403 });
    const asAlice = backend.as(alice.username);
    expect(await failure(asAlice.call("getWebhooks"))).toMatchObject({ status: 403 });
  });

  test("with secrets that are shown once, and the audit log says who did what", async () => {
    const chat = await groupOf(alice, bob);
    const hook = await hookFor(chat.id, "https://192.0.2.1/hook");
    const { items } = await backend.call("getWebhooks");
    expect(items.find(({ id }) => id === hook.id)).toEqual({
      id: hook.id,
      name: null,
      url: "https://192.0.2.1/hook",
      events: newMessages,
      chat_id: chat.id,
      created_by: null,
      disabled: null,
      created_at: expect.any(String),
    });
    expect(JSON.stringify(items)).not.toContain("whsec_");
    await hook[Symbol.asyncDispose]();
    const log = await backend.call("getAuditLog", { limit: 2 });
    expect(
      log.items.map(({ action, service_key, details }) => [action, service_key, details]),
    ).toEqual(
      ["webhook_deleted", "webhook_created"].map((action) => [
        action,
        "(PARLEY_SERVICE_KEY_FILE)",
        { webhook: hook.id },
      ]),
    );
  });

  test("with well-formed input: any other is 400, beside the field", async () => {
    const fieldsOf = async (input: object) => {
      const { status, body } = await backend.post("createWebhook", {
        url: "https://192.0.2.1/",
        events: [],
        ...input,
      });
      expect(status).toBe(400);
      return (body as { parameters: { fields: object } }).parameters.fields;
    };
    expect(await fieldsOf({ events: ["events.typing"] })).toEqual({
      "events.0": "must be the name of a stored event, such as events.messageNew",
    });
    expect(await fieldsOf({ url: "http://1.1.1.1/" })).toHaveProperty("url");
    for (const url of ["no url", "ftp://example.com/", "https://user:pass@example.com/"]) {
      expect(await fieldsOf({ url })).toHaveProperty("url");
    }
  });
});

test("a webhook to a private address is 400, unless the operator allows it", async () => {
  await using strict = await startServer({ ...noRates, ...serviceKeySetting() });
  const strictBackend = new Backend(strict.url);
  const publicUrl = { url: "https://1.1.1.1/", events: newMessages };
  const { id: webhook_id } = await strictBackend.call("createWebhook", publicUrl);
  for (const url of [
    "https://127.0.0.1/",
    "https://10.0.0.1/",
    "https://localhost/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://169.254.169.254/",
    "https://2130706433/",
    "https://0x7f.1/",
  ]) {
    for (const answered of [
      await strictBackend.post("createWebhook", { url, events: [] }),
      await strictBackend.post("setWebhook", { webhook_id, url }),
    ]) {
      expect({ url, status: answered.status }).toEqual({ url, status: 400 });
      expect(answered.body).toMatchObject({
        parameters: {
          fields: { url: "cannot be used: the address belongs to a private or special range" },
        },
      });
    }
  }
  const { items } = await strictBackend.call("getWebhooks");
  expect(items.map(({ url }) => url)).toEqual([publicUrl.url]);
});

test("a webhook to a private address is sent nothing once the operator refuses such addresses", async () => {
  await using receiver = startReceiver();
  const settings = { ...noRates, ...serviceKeySetting() };
  await using lax = await startServer({ ...settings, PARLEY_PRIVATE_ADDRESSES: "allow" });
  const input = { url: receiver.url, events: newMessages };
  const { id: webhook_id } = await new Backend(lax.url).call("createWebhook", input);
  await lax.stop();
  await using strict = await startServer({ ...settings, PARLEY_DATA: lax.dataDir });
  const carol = await signUp(strict.url, "carol");
  await say(carol, await groupOf(carol), "hello");
  const attempts = async () => {
    const { items } = await new Backend(strict.url).call("getDeliveries", { webhook_id });
    return items[0]?.latest_attempts ?? [];
  };
  await until(async () => (await attempts()).length > 0, "an attempt");
  const [attempt] = await attempts();
  expect(attempt).toMatchObject({ status: null, error: expect.stringContaining("https") });
  expect(receiver.received).toEqual([]);
});

test("the whole address of a webhook is for its creator, and others see its origin", async () => {
  const chat = await groupOf(bob, olga);
  const url = "http://127.0.0.1:9/in?secret=1";
  const input = { url, events: newMessages, chat_id: chat.id };
  const { id: own } = await olga.call("createWebhook", input);
  const { id: service } = await backend.call("createWebhook", input);
  const shownTo = async (caller: Pick<Person, "call">) => {
    const { items } = await caller.call("getWebhooks");
    return [own, service].map((id) => items.find((each) => each.id === id)?.url);
  };
  const origin = "http://127.0.0.1:9";
  expect(await shownTo(olga)).toEqual([url, origin]);
  expect(await shownTo(backend as never)).toEqual([origin, url]);
  const changed = await backend.call("setWebhook", { webhook_id: own, disabled: true });
  expect(changed.url).toBe(origin);
  for (const webhook_id of [own, service]) await backend.call("deleteWebhook", { webhook_id });
});

test("a webhook of an operator is sent nothing once they are no operator, or are deleted", async () => {
  await using receiver = startReceiver();
  const settings = { ...noRates, ...serviceKeySetting(), PARLEY_PRIVATE_ADDRESSES: "allow" };
  await using first = await startServer({ ...settings, PARLEY_OPERATORS: "olga, otto, oscar" });
  const chatters = [await operatorAt(first, "olga"), await operatorAt(first, "otto")] as const;
  await operatorAt(first, "oscar");
  const chat = await groupOf(...chatters);
  const hook = { url: receiver.url, events: newMessages, chat_id: chat.id };
  for (const operator of chatters) await operator.call("createWebhook", hook);
  await chatters[1].call("deleteMe", { password: "correct horse battery" });
  await first.stop();
  await using second = await startServer({
    ...settings,
    PARLEY_DATA: first.dataDir,
    PARLEY_OPERATORS: "otto, oscar",
  });
  await say(chatters[0].at(second.url), chat, "private");
  const disabled = async () => {
    const { items } = await new Backend(second.url).call("getWebhooks");
    return items.map((each) => [each.created_by, each.disabled]);
  };
  const ended = [
    ["olga", "creator"],
    ["otto", "creator"],
  ];
  await until(
    async () => JSON.stringify(await disabled()) === JSON.stringify(ended),
    "both webhooks are disabled",
  );
  expect(receiver.received).toEqual([]);
});

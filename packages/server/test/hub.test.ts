import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { closeCodes, type EventFrame } from "@parley/protocol";
import { createMemoryBus } from "../src/changes/bus-memory.ts";
import { personTyping } from "../src/changes/change.ts";
import { createHub } from "../src/realtime/hub.ts";
import type { Person } from "../src/realtime/people.ts";
import { broker, FakeClient, human } from "./support/broker.ts";
import { publishAll, signal } from "./support/changes.ts";

const CHAT = "0190f000-0000-7000-8000-000000000001";
const OTHER_CHAT = "0190f000-0000-7000-8000-000000000002";

const counter = (uuid: string) => ({ uuid, seq: 0 });
const renamed = (username: string): EventFrame => ({
  method: "events.accountUpdated",
  params: human(username),
});
const deleted = (id: string): EventFrame => ({
  method: "events.messageDeleted",
  params: { conversation_id: CHAT, ids: [id] },
});

function testHub() {
  const { clients, publish } = broker();
  const bus = createMemoryBus();
  const hub = createHub(bus, publish);
  bus.onChange(hub.receive);
  let accounts = 0;
  let sockets = 0;

  /** A client that is registered and not subscribed to its conversations yet. */
  function enter(username: string, session = `session-${username}`) {
    const client = new FakeClient(`socket-${++sockets}`, session);
    clients.add(client);
    const account = {
      ...human(username),
      id: ++accounts,
      owner_id: null,
      provider: null,
      suspended_at: null,
      erased_at: null,
    };
    const person = hub.enter(account, client);
    const leave = () => {
      clients.delete(client);
      hub.leave(person, client);
    };
    client.onClose = leave;
    return { client, person, leave };
  }

  function connect(username: string, conversations: string[] = [], session?: string) {
    const entered = enter(username, session);
    hub.listen(entered.person, entered.client, conversations.map(counter));
    return entered;
  }
  return { hub, node: { bus }, enter, connect };
}

describe("delivery", () => {
  test("an event is encoded once for all its receivers", () => {
    const { node, connect } = testHub();
    const people = Array.from({ length: 30 }, (_, n) => connect(`user${n}`, [CHAT]));
    let encodings = 0;
    const params = { ...human("user1"), toJSON: () => ({ encoded: ++encodings }) };
    const frame: EventFrame = { method: "events.accountUpdated", params };

    publishAll(node, [{ frame, to: { conversation: CHAT } }]);
    expect(encodings).toBe(1);
    publishAll(node, [
      { frame, to: { users: people.map(({ person }) => person.account.username) } },
    ]);
    expect(encodings).toBe(2);
    signal(node, frame, { conversation: CHAT }, "user7");
    expect(encodings).toBe(3);
    for (const { client, person } of people) {
      expect(client.received).toHaveLength(person.account.username === "user7" ? 2 : 3);
    }
  });

  test("an event of a conversation reaches every client subscribed to it and no other", () => {
    const { node, connect } = testHub();
    const phone = connect("alice", [CHAT]);
    const laptop = connect("alice", [CHAT, OTHER_CHAT]);
    const bob = connect("bob", [OTHER_CHAT]);

    publishAll(node, [{ frame: deleted("m1"), to: { conversation: CHAT } }]);
    expect(phone.client.events()).toEqual([deleted("m1")]);
    expect(laptop.client.events()).toEqual([deleted("m1")]);
    expect(bob.client.events()).toEqual([]);
  });

  test("an event for certain accounts reaches all of their clients and nobody else", () => {
    const { node, connect } = testHub();
    const phone = connect("alice", [CHAT]);
    const laptop = connect("alice");
    const bob = connect("bob", [CHAT]);
    const carol = connect("carol", [CHAT]);

    publishAll(node, [{ frame: deleted("m1"), to: { users: ["alice", "carol", "nobody"] } }]);
    for (const { client } of [phone, laptop, carol]) {
      expect(client.events()).toEqual([deleted("m1")]);
    }
    expect(bob.client.events()).toEqual([]);
  });

  test("changes arrive in the order in which they were published", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice", [CHAT]);
    const frames = ["m1", "m2", "m3", "m4"].map(deleted);

    publishAll(
      node,
      frames.map((frame) => ({ frame, to: { conversation: CHAT } })),
    );
    expect(client.events()).toEqual(frames);
  });

  test("a client that has left receives nothing", () => {
    const { node, connect } = testHub();
    const { client, leave } = connect("alice", [CHAT]);
    leave();

    publishAll(node, [{ frame: deleted("m1"), to: { conversation: CHAT } }]);
    expect(client.events()).toEqual([]);
  });
});

describe("excluded clients", () => {
  test("an event that excludes an account reaches none of its clients", () => {
    const { node, connect } = testHub();
    const alice = [connect("alice", [CHAT]), connect("alice", [CHAT])];
    const bob = connect("bob", [CHAT]);

    signal(node, deleted("m1"), { conversation: CHAT }, "alice");
    for (const { client } of alice) expect(client.events()).toEqual([]);
    expect(bob.client.events()).toEqual([deleted("m1")]);
  });

  test("an event that excludes a socket reaches the account's other sockets", () => {
    const { node, connect } = testHub();
    const asking = connect("alice");
    const other = connect("alice");
    const bob = connect("bob");

    publishAll(node, [
      { frame: deleted("m1"), to: { users: ["alice", "bob"] }, exceptSocket: asking.client.id },
    ]);
    expect(asking.client.events()).toEqual([]);
    expect(other.client.events()).toEqual([deleted("m1")]);
    expect(bob.client.events()).toEqual([deleted("m1")]);
  });

  test("a client excluded from one event receives the next", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice", [CHAT]);

    signal(node, deleted("m1"), { conversation: CHAT }, "alice");
    publishAll(node, [{ frame: deleted("m2"), to: { users: ["alice"] }, exceptSocket: client.id }]);
    publishAll(node, [{ frame: deleted("m3"), to: { conversation: CHAT } }]);
    publishAll(node, [{ frame: deleted("m4"), to: { users: ["alice"] } }]);
    expect(client.events()).toEqual([deleted("m3"), deleted("m4")]);
  });

  test("excluding a socket does not subscribe it to events of other accounts", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice");
    connect("bob");

    publishAll(node, [
      { frame: deleted("m1"), to: { users: ["alice", "bob"] }, exceptSocket: client.id },
    ]);
    publishAll(node, [{ frame: deleted("private"), to: { users: ["bob"] } }]);
    expect(client.events()).toEqual([]);
  });

  test("excluding an account does not subscribe it to a conversation it is not in", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice");

    signal(node, deleted("m1"), { conversation: CHAT }, "alice");
    publishAll(node, [{ frame: deleted("m2"), to: { conversation: CHAT } }]);
    expect(client.events()).toEqual([]);
  });

  test("excluding an account does not subscribe it to events of other accounts", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice");
    connect("bob");

    signal(node, deleted("m1"), { users: ["alice", "bob"] }, "alice");
    publishAll(node, [{ frame: deleted("private"), to: { users: ["bob"] } }]);
    expect(client.events()).toEqual([]);
  });
});

describe("membership", () => {
  const to = { conversation: CHAT };
  const moved = (users: string[]) => ({ conversation: CHAT, users });

  test("an account that joins receives the conversation from the joining event on", () => {
    const { node, connect } = testHub();
    const alice = [connect("alice"), connect("alice")];

    publishAll(node, [
      { frame: deleted("before"), to },
      { frame: deleted("joined"), to, joins: moved(["alice", "nobody"]) },
      { frame: deleted("after"), to },
    ]);
    for (const { client } of alice) {
      expect(client.events()).toEqual([deleted("joined"), deleted("after")]);
    }
  });

  test("an account that leaves receives the leaving event as its last", () => {
    const { node, connect } = testHub();
    const alice = [connect("alice", [CHAT]), connect("alice", [CHAT])];
    const bob = connect("bob", [CHAT]);

    publishAll(node, [
      { frame: deleted("left"), to, leaves: moved(["alice", "nobody"]) },
      { frame: deleted("after"), to },
    ]);
    for (const { client } of alice) expect(client.events()).toEqual([deleted("left")]);
    expect(bob.client.events()).toEqual([deleted("left"), deleted("after")]);
  });

  test("joining and leaving change `membership`, so that a connecting client reads again", () => {
    const { node, connect } = testHub();
    const { person } = connect("alice");
    const counts = [person.membership];
    const count = () => counts.push(person.membership);

    publishAll(node, [{ frame: deleted("m1"), to, joins: moved(["alice"]) }]);
    count();
    publishAll(node, [{ frame: deleted("m2"), to, leaves: moved(["alice"]) }]);
    count();
    publishAll(node, [{ frame: deleted("m3"), to, joins: moved(["bob"]) }]);
    count();
    expect(new Set(counts.slice(0, 3)).size).toBe(3);
    expect(counts[3]).toBe(counts[2] as number);
  });

  test("a leaving that was missed makes connecting clients read again, and others reconnect", () => {
    const { hub, node, enter, connect } = testHub();
    const connecting = enter("alice");
    const before = connecting.person.membership;
    const [open, elsewhere] = [connect("alice", [CHAT]), connect("alice", [OTHER_CHAT])];
    const other = connect("bob", [CHAT]);
    hub.receive({ kind: "leaving_missed", leaves: { conversation: CHAT, users: ["alice"] } });
    expect(connecting.person.membership).toBeGreaterThan(before);
    expect(open.client.closed).toMatchObject([{ code: closeCodes.goingAway }]);
    for (const { client } of [connecting, elsewhere, other]) expect(client.closed).toEqual([]);
    publishAll(node, [{ frame: deleted("secret"), to: { conversation: CHAT } }]);
    expect(open.client.received).toEqual([]);
    expect(other.client.received).toHaveLength(1);
  });

  test("a client receives nothing before `listen`", () => {
    const { hub, node, enter } = testHub();
    const { client, person } = enter("alice");

    publishAll(node, [{ frame: deleted("m1"), to, joins: moved(["alice"]) }]);
    signal(node, deleted("m2"), to, "alice");
    publishAll(node, [{ frame: deleted("m3"), to }]);
    publishAll(node, [{ frame: deleted("m4"), to: { users: ["alice"] } }]);
    expect(client.events()).toEqual([]);

    hub.listen(person, client, [counter(CHAT)]);
    publishAll(node, [{ frame: deleted("m5"), to }]);
    expect(client.events()).toEqual([deleted("m5")]);
  });
});

describe("people", () => {
  test("all clients of an account share one person, who is removed with the last of them", () => {
    const { hub, connect } = testHub();
    const phone = connect("alice");
    const laptop = connect("alice");

    expect(laptop.person).toBe(phone.person);
    expect([...phone.person.clients]).toEqual([phone.client, laptop.client]);
    phone.leave();
    expect(hub.person("alice")).toBe(laptop.person);
    laptop.leave();
    expect(hub.person("alice")).toBeUndefined();
  });

  test("open sockets are counted, and a socket that leaves twice is subtracted once", () => {
    const { hub, connect } = testHub();
    const alice = connect("alice");
    const bob = connect("bob");
    expect(hub.size()).toBe(2);

    alice.leave();
    alice.leave();
    expect(hub.size()).toBe(1);
    expect([...hub.clients()]).toEqual([bob.client]);
  });

  test("a new display name applies to open sockets", () => {
    const { node, connect } = testHub();
    const { person } = connect("alice");
    const params = { ...human("alice"), display_name: "Alice the Second" };

    publishAll(node, [
      { frame: { method: "events.accountUpdated", params }, to: { users: ["alice"] } },
    ]);
    expect(person.account.display_name).toBe("Alice the Second");
    expect(person.account.id).toBe(1);
  });

  test("a new display name of an account that is not connected is ignored", () => {
    const { hub, node } = testHub();
    publishAll(node, [{ frame: renamed("alice"), to: { users: ["alice"] } }]);
    expect(hub.person("alice")).toBeUndefined();
  });
});

describe("ended sessions", () => {
  test("the end of a session closes its sockets, and no others, as signed out", () => {
    const { hub, node, connect } = testHub();
    const ended = [connect("alice", [], "s1"), connect("alice", [], "s1")];
    const others = [connect("alice", [], "s2"), connect("bob", [], "s3")];

    publishAll(node, [{ kind: "session_ended", session_id: "s1" }]);
    for (const { client } of ended) {
      expect(client.closed).toEqual([{ code: closeCodes.signedOut, reason: expect.any(String) }]);
    }
    for (const { client } of others) expect(client.closed).toEqual([]);
    expect(hub.size()).toBe(2);
  });

  test("the end of a session is delivered in order with other changes", () => {
    const { node, connect } = testHub();
    const { client } = connect("alice", [], "s1");
    const to = { users: ["alice"] };

    publishAll(node, [
      { frame: deleted("before"), to },
      { kind: "session_ended", session_id: "s1" },
      { frame: deleted("after"), to },
    ]);
    expect(client.events()).toEqual([deleted("before")]);
  });
});

describe("typing", () => {
  const EXPIRES_MS = 6000;
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  const shown = (username: string, is_typing: boolean, conversation_id = CHAT): EventFrame => ({
    method: "events.typing",
    params: { conversation_id, actor: human(username), is_typing },
  });

  /** Alice and Bob in two conversations; the tests look at what Bob receives. */
  function typingInTwoChats() {
    const made = testHub();
    const alice = made.connect("alice", [CHAT, OTHER_CHAT]);
    const bob = made.connect("bob", [CHAT, OTHER_CHAT]);
    const type = ({ person }: { person: Person }, isTyping: boolean, chat = CHAT) =>
      made.node.bus.publish(personTyping(chat, person.account, isTyping));
    return { ...made, alice, bob, type };
  }

  test("everyone but the sender sees typing start and stop, with the public account only", () => {
    const { alice, bob, type } = typingInTwoChats();
    type(alice, true);
    type(alice, false);
    expect(bob.client.events()).toEqual([shown("alice", true), shown("alice", false)]);
    expect(alice.client.events()).toEqual([]);
  });

  test("typing that is not renewed ends once", () => {
    const { alice, bob, type } = typingInTwoChats();
    type(alice, true);
    jest.advanceTimersByTime(EXPIRES_MS - 1);
    expect(bob.client.events()).toEqual([shown("alice", true)]);
    jest.advanceTimersByTime(1);
    expect(bob.client.events()).toEqual([shown("alice", false)]);
    jest.advanceTimersByTime(10 * EXPIRES_MS);
    expect(bob.client.events()).toEqual([]);
  });

  test("renewed typing is shown again and ends later", () => {
    const { alice, bob, type } = typingInTwoChats();
    type(alice, true);
    bob.client.events();
    for (let renewal = 0; renewal < 5; renewal++) {
      jest.advanceTimersByTime(EXPIRES_MS - 1);
      type(alice, true);
      expect(bob.client.events()).toEqual([shown("alice", true)]);
    }
    jest.advanceTimersByTime(EXPIRES_MS);
    expect(bob.client.events()).toEqual([shown("alice", false)]);
  });

  test("typing that starts again after it expired is shown again", () => {
    const { alice, bob, type } = typingInTwoChats();
    type(alice, true);
    jest.advanceTimersByTime(EXPIRES_MS);
    bob.client.events();
    type(alice, true);
    expect(bob.client.events()).toEqual([shown("alice", true)]);
  });

  test("typing that was stopped does not expire a second time", () => {
    const { alice, bob, type } = typingInTwoChats();
    type(alice, true);
    type(alice, false);
    bob.client.events();
    jest.advanceTimersByTime(10 * EXPIRES_MS);
    expect(bob.client.events()).toEqual([]);
  });

  test("typing in one conversation or by one person does not affect others", () => {
    const { connect, alice, bob, type } = typingInTwoChats();
    const carol = connect("carol", [CHAT]);
    type(alice, true);
    type(alice, true, OTHER_CHAT);
    type(carol, true);
    bob.client.events();
    type(alice, false);
    expect(bob.client.events()).toEqual([shown("alice", false)]);
    jest.advanceTimersByTime(EXPIRES_MS);
    expect(bob.client.events()).toEqual([shown("alice", false, OTHER_CHAT), shown("carol", false)]);
  });

  test("typing ends in all conversations when the sender's last socket closes, and not before", () => {
    const { connect, alice, bob, type } = typingInTwoChats();
    const phone = connect("alice", [CHAT]);
    type(alice, true);
    type(alice, true, OTHER_CHAT);
    bob.client.events();
    phone.leave();
    expect(bob.client.events()).toEqual([]);
    alice.leave();
    expect(bob.client.events()).toEqual([shown("alice", false), shown("alice", false, OTHER_CHAT)]);
    jest.advanceTimersByTime(10 * EXPIRES_MS);
    expect(bob.client.events()).toEqual([]);
  });

  test("a sender who leaves while typing receives nothing of the conversation when typing ends", () => {
    const { node, alice, bob, type } = typingInTwoChats();
    type(alice, true);
    const leaves = { conversation: CHAT, users: ["alice"] };
    publishAll(node, [{ frame: deleted("left"), to: { conversation: CHAT }, leaves }]);
    alice.client.events();
    jest.advanceTimersByTime(EXPIRES_MS);
    expect(bob.client.events()).toContainEqual(shown("alice", false));
    publishAll(node, [{ frame: deleted("secret"), to: { conversation: CHAT } }]);
    expect(alice.client.events()).toEqual([]);
  });
});

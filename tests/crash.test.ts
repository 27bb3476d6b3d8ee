import { expect, test } from "bun:test";
import { closeCodes } from "@parley/protocol";
import { type Person, type Socket, signUp } from "@parley/testkit/client.ts";
import { rounds } from "@parley/testkit/rounds.ts";
import { startServer } from "@parley/testkit/server.ts";

const UNLIMITED = JSON.stringify({ messages_per_second: 0, operations_per_second: 0 });
const WRITERS = 4;
const WINDOW = 20;

/** Sends messages, many in flight, until the socket closes. Returns the acknowledged ones. */
async function write(socket: Socket, chat_id: string, name: string, acknowledged: Set<string>) {
  let sent = 0;
  const lane = async () => {
    while (!socket.closed) {
      const client_msg_id = `${name}-${sent++}`;
      const message = await socket.call("sendMessage", {
        chat_id,
        content: `message ${client_msg_id}`,
        client_msg_id,
      });
      acknowledged.add(message.client_msg_id ?? "");
    }
  };
  const lanes = Array.from({ length: WINDOW }, () => lane().catch(() => undefined));
  await socket.until(() => socket.closed, "the crash");
  return Promise.race(lanes);
}

async function wholeHistory(person: Person, chat_id: string) {
  const ids: (string | null)[] = [];
  const seqs: number[] = [];
  let before: string | undefined;
  for (;;) {
    const page = await person.call("getChatHistory", {
      chat_id,
      limit: 100,
      ...(before && { before }),
    });
    ids.unshift(...page.items.map(({ client_msg_id }) => client_msg_id));
    seqs.unshift(...page.items.map(({ seq }) => seq));
    before = page.items[0]?.id;
    if (!page.has_more) return { ids, seqs };
  }
}

test("kill -9 under load loses no acknowledged message and duplicates none", async () => {
  await using server = await startServer({ PARLEY_LIMITS: UNLIMITED });
  const people = await Promise.all(
    Array.from({ length: WRITERS }, (_, place) => signUp(server.url, `writer${place}`)),
  );
  const [first] = people as [Person];
  const chat = await first.call("startChat", {
    usernames: people.map(({ username }) => username),
    kind: "group",
  });
  const acknowledged = new Set<string>();

  for (let crash = 0; crash < rounds({ few: 2, all: 5 }); crash++) {
    const sockets = await Promise.all(people.map((person) => person.at(server.url).connect()));
    const writing = sockets.map((socket, place) =>
      write(socket, chat.id, `${crash}-${place}`, acknowledged),
    );
    const before = acknowledged.size;
    const [first] = sockets as [Socket];
    await first.until(() => acknowledged.size > before + 300, "300 acknowledgements");
    await server.kill();
    await Promise.all(writing);
    await server.restart();
  }

  const reader = first.at(server.url);
  const { ids, seqs } = await wholeHistory(reader, chat.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...acknowledged].filter((id) => !ids.includes(id))).toEqual([]);
  expect(seqs).toEqual(seqs.map((_, place) => place + 1));
});

test("a resend after a crash returns the stored message", async () => {
  await using server = await startServer();
  const [ann, bob] = await Promise.all([signUp(server.url, "ann"), signUp(server.url, "bob")]);
  const chat = await ann.call("startChat", { usernames: [bob.username] });
  const input = { chat_id: chat.id, content: "once", client_msg_id: "only" };
  const sent = await ann.call("sendMessage", input);
  await server.kill();
  await server.restart();
  const again = ann.at(server.url);
  expect(await again.call("sendMessage", input)).toEqual(sent);
  const { items } = await again.call("getChatHistory", { chat_id: chat.id });
  expect(items).toEqual([sent]);
});

test("a graceful stop finishes calls in progress and tells clients to reconnect", async () => {
  await using server = await startServer({ PARLEY_LIMITS: UNLIMITED });
  const [ann, bob] = await Promise.all([signUp(server.url, "ann"), signUp(server.url, "bob")]);
  const chat = await ann.call("startChat", { usernames: [bob.username] });
  const socket = await ann.connect();
  await socket.call("sendMessage", { chat_id: chat.id, content: "before the stop" });
  expect(await server.stop()).toBe(0);
  await socket.until(() => socket.closed, "close");
  expect(socket.closed?.code).toBe(closeCodes.goingAway);
});

test("calls during a stop are answered as unavailable, not as if the session had ended", async () => {
  await using server = await startServer({ PARLEY_LIMITS: UNLIMITED });
  const person = await signUp(server.url);
  const sockets = await Promise.all(Array.from({ length: 10 }, () => person.connect()));
  const codes = new Set<string>();
  const calling = sockets.map(async (socket) => {
    for (let isOpen = true; isOpen; ) {
      const calls = Array.from({ length: 20 }, () => socket.reply("getMe"));
      for (const each of await Promise.allSettled(calls)) {
        if (each.status === "rejected") isOpen = false;
        else if (!each.value.ok) codes.add(each.value.error.code);
      }
    }
  });
  await server.stop();
  await Promise.all(calling);
  expect([...codes].filter((code) => code !== "unavailable")).toEqual([]);
});

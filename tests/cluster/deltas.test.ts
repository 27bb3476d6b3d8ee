import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Conversation, Message } from "@parley/protocol";
import {
  agentOf,
  groupOf,
  liftLimits,
  type Person,
  people,
  replyTo,
  type Socket,
  say,
} from "@parley/testkit/client.ts";
import type { TestNode } from "@parley/testkit/cluster.ts";
import type { Responder } from "@parley/testkit/provider-server.ts";
import { newKey } from "@parley/testkit/turns.ts";
import { type AgentCluster, startAgentCluster } from "./users.ts";

/** Every socket checks that the deltas it receives add up to the final content: see `AnswerCheck`. */

let setup: AgentCluster;
let nodes: readonly TestNode[];
let alice: Person;
let agent: string;
beforeAll(async () => {
  // So many that no answer is cut off during a test.
  setup = await startAgentCluster({ max_output_tokens: 50_000 });
  nodes = setup.cluster.nodes;
  [alice] = await people(setup.cluster.url, "alice");
  agent = agentOf(alice);
  await liftLimits(alice);
  setup.sharedProvider.respond(await newKey(alice), streamsForever);
});
afterAll(() => setup[Symbol.asyncDispose]());

/** Streams words until the caller disconnects. */
const streamsForever: Responder = async ({ head, write, frames }) => {
  await head(200);
  await write(frames.begin);
  for (let word = 0; ; word++) {
    await write(frames.text(`wörd ${word} `));
    await Bun.sleep(1);
  }
};

const nodeAt = (index: number) => nodes[index % nodes.length] as TestNode;

/** One socket at every node. */
async function connectEverywhere() {
  const sockets = await Promise.all(nodes.map(({ url }) => alice.at(url).connect()));
  return {
    all: sockets,
    first: sockets[0] as Socket,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) await socket[Symbol.asyncDispose]();
    },
  };
}

const chatsOf = (count: number): Promise<Conversation[]> =>
  Promise.all(Array.from({ length: count }, () => groupOf(alice, { username: agent })));

const ask = (chat: Conversation, node: TestNode) =>
  say(alice.at(node.url), chat, `@${agent} hello`);

/** Waits until a socket has received this much of an answer. */
const waitForDelta = ({ id }: Message, socket: Socket, bytes = 1) =>
  socket.event("events.messageDelta", (delta) => delta.id === id && delta.offset >= bytes);

const waitForEnd = async (messages: readonly Message[], sockets: readonly Socket[]) => {
  for (const socket of sockets) {
    for (const { id } of messages) {
      await socket.event("events.messageComplete", (message) => message.id === id);
    }
  }
};

describe("the deltas of an answer are its content", () => {
  test("whichever node stops it, at any moment", async () => {
    await using everywhere = await connectEverywhere();
    const chats = await chatsOf(30);
    const stopped = await Promise.all(
      chats.map(async (chat, index) => {
        const message = await replyTo(everywhere.first, await ask(chat, nodeAt(index)));
        await waitForDelta(message, everywhere.first, 1 + index * 7);
        const stopper = alice.at(nodeAt(index + 1).url);
        await stopper.call("stopAgentTurn", { message_id: message.id });
        return message;
      }),
    );
    await waitForEnd(stopped, everywhere.all);
  });

  test("when PostgreSQL crashes while it streams", async () => {
    const { postgres, ready } = setup.cluster;
    await using everywhere = await connectEverywhere();
    for (let round = 0; round < 3; round++) {
      const chats = await chatsOf(9);
      const cut = await Promise.all(
        chats.map(async (chat, index) => {
          const message = await replyTo(everywhere.first, await ask(chat, nodeAt(index)));
          await waitForDelta(message, everywhere.first, 1 + round * 40);
          return message;
        }),
      );
      await postgres.kill();
      await postgres.start();
      await ready();
      for (const chat of chats) {
        await alice.at(nodeAt(round).url).call("stopChatAgents", { chat_id: chat.id });
      }
      await waitForEnd(cut, everywhere.all);
    }
  });

  test("when its node dies, or is paused until another node takes over", async () => {
    await using everywhere = await connectEverywhere();
    for (const fail of [
      async (node: TestNode) => {
        node.pause();
        return async () => node.resume();
      },
      async (node: TestNode) => {
        await node.kill();
        return () => node.restart();
      },
    ]) {
      const chats = await chatsOf(6);
      const cut = await Promise.all(
        chats.map(async (chat, index) => {
          const message = await replyTo(everywhere.first, await ask(chat, nodeAt(index)));
          await waitForDelta(message, everywhere.first);
          return message;
        }),
      );
      const mend = await fail(nodeAt(2));
      const survivors = everywhere.all.slice(0, 2);
      for (const { id } of cut) {
        // Turns of the other nodes continue, so they are stopped.
        const stop = alice.at(nodeAt(0).url).call("stopAgentTurn", { message_id: id });
        await stop.catch(() => undefined);
      }
      await waitForEnd(cut, survivors);
      await mend();
    }
  });

  test("when the nodes lose NATS while it streams", async () => {
    await using everywhere = await connectEverywhere();
    const chats = await chatsOf(6);
    const messages = await Promise.all(
      chats.map(async (chat, index) => {
        const message = await replyTo(everywhere.first, await ask(chat, nodeAt(index)));
        for (const socket of everywhere.all) await waitForDelta(message, socket);
        return message;
      }),
    );
    for (const node of nodes) node.disconnectNats();
    // Each node continues its own turns, and reads the others from the store.
    const deltasAt = (socket: Socket) => socket.eventsNamed("events.messageDelta");
    await Promise.race(
      everywhere.all.map((socket) => {
        const before = deltasAt(socket).length;
        return socket.until(() => deltasAt(socket).length > before + 20, "more deltas");
      }),
    );
    for (const socket of everywhere.all) {
      for (const message of messages) {
        const before = Math.max(
          ...deltasAt(socket)
            .filter(({ params }) => params.id === message.id)
            .map(({ params }) => params.offset),
        );
        await waitForDelta(message, socket, before + 1);
      }
    }
    const all = everywhere.all.flatMap(deltasAt).map(({ params }) => params);
    const furthest = ({ id }: Message) =>
      Math.max(...all.filter((delta) => delta.id === id).map(({ offset }) => offset));
    for (const node of nodes) node.reconnectNats();
    await setup.cluster.ready();
    // Sockets that missed deltas receive them while the answer still streams.
    for (const message of messages) {
      for (const socket of everywhere.all)
        await waitForDelta(message, socket, furthest(message) + 1);
    }
    for (const chat of chats) await alice.call("stopChatAgents", { chat_id: chat.id });
    await waitForEnd(messages, everywhere.all);
    expect(everywhere.all.every(({ closed }) => closed === null)).toBe(true);
  });
});

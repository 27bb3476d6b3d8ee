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
import { startScene, type TestScene } from "./crew.ts";

/** Every socket checks that the deltas it hears add up to the final content: see `AnswerCheck`. */

let scene: TestScene;
let nodes: readonly TestNode[];
let alice: Person;
let agent: string;
beforeAll(async () => {
  scene = await startScene();
  nodes = scene.cluster.nodes;
  [alice] = await people(scene.cluster.url, "alice");
  agent = agentOf(alice);
  await liftLimits(alice);
  scene.sharedProvider.respond(await newKey(alice), talksOn);
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Says one word after another for as long as somebody listens. */
const talksOn: Responder = async ({ head, write, frames }) => {
  await head(200);
  await write(frames.begin);
  for (let word = 0; ; word++) {
    await write(frames.text(`wörd ${word} `));
    await Bun.sleep(1);
  }
};

const nodeAt = (place: number) => nodes[place % nodes.length] as TestNode;

/** Somebody listening at every node, until the answers are over. */
async function listeners() {
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

/** Waits for some words of an answer at a socket. */
const heardOf = ({ id }: Message, socket: Socket, bytes = 1) =>
  socket.event("events.messageDelta", (delta) => delta.id === id && delta.offset >= bytes);

const endedAt = async (messages: readonly Message[], sockets: readonly Socket[]) => {
  for (const socket of sockets) {
    for (const { id } of messages) {
      await socket.event("events.messageComplete", (message) => message.id === id);
    }
  }
};

describe("the deltas of an answer are its content", () => {
  test("whichever node stops it, at whatever moment", async () => {
    await using everywhere = await listeners();
    const chats = await chatsOf(30);
    const stopped = await Promise.all(
      chats.map(async (chat, place) => {
        const message = await replyTo(everywhere.first, await ask(chat, nodeAt(place)));
        await heardOf(message, everywhere.first, 1 + place * 7);
        const stopper = alice.at(nodeAt(place + 1).url);
        await stopper.call("stopAgentTurn", { message_id: message.id });
        return message;
      }),
    );
    await endedAt(stopped, everywhere.all);
  });

  test("when PostgreSQL crashes in the middle of it", async () => {
    const { postgres, ready } = scene.cluster;
    await using everywhere = await listeners();
    for (let round = 0; round < 3; round++) {
      const chats = await chatsOf(9);
      const cut = await Promise.all(
        chats.map(async (chat, place) => {
          const message = await replyTo(everywhere.first, await ask(chat, nodeAt(place)));
          await heardOf(message, everywhere.first, 1 + round * 40);
          return message;
        }),
      );
      await postgres.kill();
      await postgres.start();
      await ready();
      for (const chat of chats) {
        await alice.at(nodeAt(round).url).call("stopChatAgents", { chat_id: chat.id });
      }
      await endedAt(cut, everywhere.all);
    }
  });

  test("when the node that streams it dies, or stands still until it was taken over", async () => {
    await using everywhere = await listeners();
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
        chats.map(async (chat, place) => {
          const message = await replyTo(everywhere.first, await ask(chat, nodeAt(place)));
          await heardOf(message, everywhere.first);
          return message;
        }),
      );
      const mend = await fail(nodeAt(2));
      const survivors = everywhere.all.slice(0, 2);
      for (const { id } of cut) {
        // Those of the other nodes go on: they are stopped.
        const stop = alice.at(nodeAt(0).url).call("stopAgentTurn", { message_id: id });
        await stop.catch(() => undefined);
      }
      await endedAt(cut, survivors);
      await mend();
    }
  });

  test("when the nodes lost each other in the middle of it", async () => {
    await using everywhere = await listeners();
    const chats = await chatsOf(6);
    const messages = await Promise.all(
      chats.map(async (chat, place) => {
        const message = await replyTo(everywhere.first, await ask(chat, nodeAt(place)));
        for (const socket of everywhere.all) await heardOf(message, socket);
        return message;
      }),
    );
    for (const node of nodes) node.cutOff();
    // Each node goes on with what it streams itself.
    const deltasAt = (socket: Socket) => socket.eventsNamed("events.messageDelta");
    await Promise.race(
      everywhere.all.map((socket) => {
        const before = deltasAt(socket).length;
        return socket.until(() => deltasAt(socket).length > before + 20, "more deltas");
      }),
    );
    const all = everywhere.all.flatMap(deltasAt).map(({ params }) => params);
    const furthest = ({ id }: Message) =>
      Math.max(...all.filter((delta) => delta.id === id).map(({ offset }) => offset));
    for (const node of nodes) node.mend();
    await scene.cluster.ready();
    // Those who missed some hear them while it still streams.
    for (const message of messages) {
      for (const socket of everywhere.all) await heardOf(message, socket, furthest(message) + 1);
    }
    for (const chat of chats) await alice.call("stopChatAgents", { chat_id: chat.id });
    await endedAt(messages, everywhere.all);
    expect(everywhere.all.every(({ closed }) => closed === null)).toBe(true);
  });
});

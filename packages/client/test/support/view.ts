import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import type { Person } from "@parley/testkit/client.ts";
import { comparable, fetchView, type View } from "@parley/testkit/model.ts";
import { type Client, isCallError, type LocalFile } from "../../src/index.ts";
import { online } from "./clients.ts";

const TIMEOUT_MS = 60_000;

/** Waits until the model equals the server's state, and shows the difference after a timeout. */
export const equalsServer = (client: Client, person: Person): Promise<void> =>
  becomesEqual(client, () => fetchView(person));

/** Waits until two models show the same: an answer may still stream, and reach one before the other. */
export const equalsModel = (client: Client, other: Client): Promise<void> =>
  becomesEqual(client, async () => {
    await other.getMe();
    return viewOf(other);
  });

async function becomesEqual(client: Client, view: () => Promise<View>): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (;;) {
    // Replies come on the same socket as events: events sent before this reply have arrived.
    await client.getMe().catch(ignoreLost);
    await online(client);
    const expected = withoutOwnSeq(await view());
    const actual = withoutOwnSeq(viewOf(client));
    if (Bun.deepEquals(actual, expected) || Date.now() > deadline) {
      expect(actual).toEqual(expected);
      return;
    }
  }
}

/** The client may not have noticed yet that its connection was cut. */
function ignoreLost(error: unknown): void {
  if (!isCallError(error) || error.code !== "unavailable") throw error;
}

/** Everything that a client's model shows, without failed messages. */
export function viewOf({ model }: Client): View {
  const view: View = {};
  for (const id of model.get("chats")) {
    const chat = model.get(`chat:${id}`);
    if (!chat) throw new Error(`the list contains an unknown conversation: ${id}`);
    const last_message = chat.last_message && plain(chat.last_message);
    view[id] = {
      conversation: { ...chat, reads: { ...chat.reads }, last_message },
      messages: model
        .get(`messages:${id}`)
        .items.filter(({ delivery }) => delivery !== "failed")
        .map(plain),
      changes: model.get(`messages:${id}`).changes.map((change) => ({ ...change })),
    };
  }
  return view;
}

/** A message without what only this client knows of it. */
function plain(message: Message & { delivery?: unknown; failure?: unknown }): Message {
  const { delivery: _, failure: __, ...rest } = message;
  const withoutUrl = ({ url: ___, ...file }: LocalFile) => file;
  return { ...rest, files: message.files.map(withoutUrl) };
}

/** Opens every conversation and loads all of it. */
export async function loadAll({ model }: Client): Promise<void> {
  while (await model.loadMoreChats());
  for (const id of model.get("chats")) {
    await model.openChat(id).catch(() => {});
    // Aside is extended and not loaded again, so that its content is checked too.
    while (model.get(`aside:${id}`)) await model.loadAside(id, "newer");
    while (model.get(`messages:${id}`).hasOlder) await model.loadOlder(id);
  }
}

/** The view without `own_seq`, which a model updates only in conversations with hidden messages. */
export function withoutOwnSeq(view: View): View {
  const copy = comparable(view);
  for (const { conversation } of Object.values(copy)) conversation.own_seq = 0;
  return copy;
}

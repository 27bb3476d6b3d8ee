import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import type { Person } from "@parley/testkit/client.ts";
import { comparable, fetchView, type View } from "@parley/testkit/model.ts";
import { type Client, isCallError } from "../../src/index.ts";
import { online } from "./clients.ts";

const PATIENCE_MS = 60_000;

/** Asks until the model is as the server has it, and shows the difference if it never is. */
export async function equalsServer(client: Client, person: Person): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    // Answers come on the same line as events: whatever was on its way is here.
    await client.getMe().catch(unlessLost);
    await online(client);
    const expected = tellable(await fetchView(person));
    const actual = tellable(viewOf(client));
    if (Bun.deepEquals(actual, expected) || Date.now() > deadline) {
      expect(actual).toEqual(expected);
      return;
    }
  }
}

/** A line that was cut a moment ago may not have been noticed yet. */
function unlessLost(error: unknown): void {
  if (!isCallError(error) || error.code !== "unavailable") throw error;
}

/** Everything that a client's model shows, but for what the service has refused. */
export function viewOf({ model }: Client): View {
  const view: View = {};
  for (const id of model.get("chats")) {
    const chat = model.get(`chat:${id}`);
    if (!chat) throw new Error(`the list has a conversation that is not there: ${id}`);
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

function plain(message: Message & { delivery?: unknown; failure?: unknown }): Message {
  const { delivery: _, failure: __, ...rest } = message;
  return rest;
}

/** Opens every conversation and loads all of it. */
export async function loadAll({ model }: Client): Promise<void> {
  while (await model.loadMoreChats());
  for (const id of model.get("chats")) {
    await model.openChat(id).catch(() => {});
    // What was loaded further back is not loaded again: it has to be right as it is.
    while (model.get(`aside:${id}`)) await model.loadAside(id, "newer");
    while (model.get(`messages:${id}`).hasOlder) await model.loadOlder(id);
  }
}

/** The view without the caller's own counter, which a model keeps where it last mattered. */
export function tellable(view: View): View {
  const copy = comparable(view);
  for (const { conversation } of Object.values(copy)) conversation.own_seq = 0;
  return copy;
}

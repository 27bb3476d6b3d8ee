import type { Store } from "../../src/store/store.ts";
import { agentFixture } from "./store-contract/agent-fixture.ts";
import { openFixture, START } from "./store-contract/fixture.ts";

/** Stores what earlier versions wrote when an agent had no key, and a report of the answer. */
export async function answerWithoutKey(store: Store) {
  const opened = {
    store,
    reopen: async () => store,
    storedEntries: async () => [],
    dispose: () => store.close(),
  };
  const { begin, finish, agent, bob } = await agentFixture(await openFixture(async () => opened));
  const sentence = "Alice has not set an API key for this agent yet.";
  const { id, message } = await begin();
  const error = { code: "key_missing", message: sentence } as const;
  await finish(id, { status: "failed", content: sentence, error });
  const accounts = { reporter_id: bob.id, sender_id: agent.id };
  const report = { id: Bun.randomUUIDv7(), at: START, reason: "spam", message, around: [] };
  await store.write((tx) => tx.insertReport({ ...report, ...accounts }));
  return { message_id: message.id, viewer_id: bob.id };
}

/** What the reader of that answer sees of it after the migration. */
export const WITHOUT_NAME = {
  content: "The owner of this agent has not set an API key for it yet.",
  turn: {
    error: {
      code: "key_missing",
      message: "The owner of this agent has not set an API key for it yet.",
    },
  },
};

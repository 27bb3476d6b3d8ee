import { NOBODY } from "../rules/accounts.ts";
import type { Store } from "../store/store.ts";

/** What a bus reads from the store when changes arrive late or not at all. */
export const storedState = (store: Pick<Store, "read">) => ({
  /** Reads the current conversation, and which of these accounts participate in it. */
  readConversation: (uuid: string, users: readonly string[]) =>
    store.read(async (tx) => {
      const conversation = await tx.conversation(uuid, NOBODY);
      if (!conversation) return null;
      const participants = await tx.participantsAmong(conversation.id, users);
      return { shared: await tx.sharedConversation(conversation.id), participants };
    }),
  /** Reads the stored text of a message; null when there is no such message. */
  readText: (message: string) =>
    store.read(async (tx) => (await tx.messageViews([message], NOBODY))[0]?.content ?? null),
});

import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { personTyping } from "../changes/change.ts";
import { checkWritable, joinedConversation } from "../domain/access.ts";
import { fanOutCost } from "../rules/costs.ts";

export const typing = createResource<"store" | "changes">();

typing.handle(operations.sendChatAction, async (context, input) => {
  const { store, caller, changes, charge } = context;
  const conversation = await store.read((tx) => joinedConversation(tx, input.chat_id, caller));
  const on = input.action === undefined ? input.is_typing === true : input.action === "typing";
  if (on) checkWritable(conversation);
  charge(fanOutCost(conversation.participant_count));
  changes.signal(personTyping(input.chat_id, caller.account, on));
});

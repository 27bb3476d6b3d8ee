import { operations } from "@parley/protocol";
import { personTyping } from "../changes/change.ts";
import { checkWritable, joinedConversation } from "../domain/access.ts";
import { bind } from "../operation.ts";
import { fanOutCost } from "../rules/costs.ts";

const sendChatAction = bind(operations.sendChatAction, async (context, input) => {
  const { store, caller, changes, charge } = context;
  const conversation = await store.read((tx) => joinedConversation(tx, input.chat_id, caller));
  const on = input.action === undefined ? input.is_typing === true : input.action === "typing";
  if (on) checkWritable(conversation);
  charge(fanOutCost(conversation));
  changes.signal(personTyping(input.chat_id, caller.account, on));
});

export const typing = [sendChatAction];

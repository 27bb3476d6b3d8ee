import { operations, type Reaction } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { counted } from "../changes/change.ts";
import type { Limits } from "../config/config.ts";
import { checkWritable, visibleMessage } from "../domain/access.ts";
import { createCursor, pageBounds, pageOf } from "../domain/pagination.ts";
import { publicAccount } from "../rules/accounts.ts";
import { fanOutCost } from "../rules/costs.ts";
import { conflict } from "../rules/failure.ts";
import type { Participant } from "../security/caller.ts";
import type { MessageRecord } from "../store/message-records.ts";
import type { WriteTx } from "../store/store.ts";

type Needs = "config" | "store";
export const reactions = createResource<Needs>();

interface Target {
  message_id: string;
  emoji: string;
}

reactions.handle(operations.setMessageReaction, (context, input) => {
  const { store, caller, config } = context;
  return store.write(async (tx) => {
    const { message, conversation, existing } = await find(tx, input, context);
    if (existing) await remove(tx, message, input.emoji, caller);
    else if (!input.remove) {
      checkWritable(conversation);
      return add(tx, message, input.emoji, caller, config.limits);
    }
    return undefined;
  });
});

reactions.handle(operations.addReaction, (context, input) => {
  const { store, caller, config } = context;
  return store.write(async (tx) => {
    const { message, conversation, existing } = await find(tx, input, context);
    if (!existing) checkWritable(conversation);
    return existing ?? add(tx, message, input.emoji, caller, config.limits);
  });
});

reactions.handle(operations.removeReaction, (context, input) => {
  const { store, caller } = context;
  return store.write(async (tx) => {
    const { message, existing } = await find(tx, input, context);
    if (existing) await remove(tx, message, input.emoji, caller);
  });
});

const reactionsCursor = createCursor(z.int());

reactions.handle(operations.getMessageReactions, ({ store, caller, config }, input) =>
  store.read(async (tx) => {
    const { message } = await visibleMessage(tx, input.message_id, caller);
    const page = pageBounds(input.limit, config.limits);
    const found = await tx.reactions({
      message,
      emoji: input.emoji,
      after: reactionsCursor.decode(input.cursor),
      limit: page.limit + 1,
    });
    const { items, next_cursor } = pageOf(found, page, (last) =>
      reactionsCursor.encode(last.place),
    );
    return { items: items.map(({ reaction }) => reaction), next_cursor };
  }),
);

async function find(
  tx: WriteTx,
  { message_id, emoji }: Target,
  { caller, charge }: Context<Needs, Participant>,
) {
  const { message, conversation } = await visibleMessage(tx, message_id, caller);
  charge(fanOutCost(conversation));
  return { message, conversation, existing: await tx.reaction(message, caller.account, emoji) };
}

async function add(
  tx: WriteTx,
  message: MessageRecord,
  emoji: string,
  { account }: Participant,
  limits: Limits,
): Promise<Reaction> {
  const counts = await tx.reactionCounts(message, account.id);
  if (counts.own >= limits.reactions_per_person) {
    throw conflict("you have too many reactions to this message");
  }
  if (!counts.emoji.includes(emoji) && counts.emoji.length >= limits.reactions_per_message) {
    throw conflict("this message has too many different reactions");
  }
  const at = Date.now();
  const seq = await tx.addReaction(message, { reactor: account, emoji, at });
  const reaction = {
    message_id: message.uuid,
    reactor: publicAccount(account),
    emoji,
    created_at: new Date(at).toISOString(),
  };
  tx.emit(counted("events.reactionAdded", reaction, message.conversation_uuid, seq));
  return reaction;
}

async function remove(
  tx: WriteTx,
  message: MessageRecord,
  emoji: string,
  { account }: Participant,
): Promise<void> {
  const seq = await tx.removeReaction(message, account.id, emoji);
  const params = { message_id: message.uuid, reactor: publicAccount(account), emoji };
  tx.emit(counted("events.reactionRemoved", params, message.conversation_uuid, seq));
}

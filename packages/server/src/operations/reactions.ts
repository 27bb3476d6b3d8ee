import { operations, type Reaction } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { counted } from "../changes/change.ts";
import { checkWritable, visibleMessage } from "../domain/access.ts";
import { createPages } from "../domain/pagination.ts";
import { publicAccount } from "../rules/accounts.ts";
import { conflict } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import type { Participant } from "../security/caller.ts";
import type { WriteTx } from "../store/store.ts";

export const reactions = createResource<"config">();

reactions.write(operations.setMessageReaction, async (tx, context, input) => {
  const target = await find(tx, input, context);
  if (target.existing) await remove(tx, target, context);
  else if (!input.remove) return add(tx, target, context);
  return undefined;
});

reactions.write(operations.addReaction, async (tx, context, input) => {
  const target = await find(tx, input, context);
  return target.existing ?? add(tx, target, context);
});

reactions.write(operations.removeReaction, async (tx, context, input) => {
  const target = await find(tx, input, context);
  if (target.existing) await remove(tx, target, context);
});

const reactionPages = createPages(z.int(), ({ place }: { place: number }) => place);

reactions.read(operations.getMessageReactions, async (tx, { caller, config }, input) => {
  const { message } = await visibleMessage(tx, input.message_id, caller);
  const { after, limit, of } = reactionPages(input, config);
  const found = await tx.reactions({ message, emoji: input.emoji, after, limit });
  const { items, next_cursor } = of(found);
  return { items: items.map(({ reaction }) => reaction), next_cursor };
});

type Reacting = Context<"config", Participant>;
type Target = Awaited<ReturnType<typeof find>>;

async function find(
  tx: WriteTx,
  { message_id, emoji }: { message_id: string; emoji: string },
  { caller }: Reacting,
) {
  const { message, conversation } = await visibleMessage(tx, message_id, caller);
  const existing = await tx.reaction(message, caller.account, emoji);
  return { message, conversation, emoji, existing };
}

async function add(
  tx: WriteTx,
  { message, conversation, emoji }: Target,
  { caller: { account }, config: { limits } }: Reacting,
): Promise<Reaction> {
  checkWritable(conversation);
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
    created_at: iso(at),
  };
  tx.emit(counted("events.reactionAdded", reaction, message.conversation_uuid, seq));
  return reaction;
}

async function remove(tx: WriteTx, { message, emoji }: Target, { caller: { account } }: Reacting) {
  const seq = await tx.removeReaction(message, account.id, emoji);
  const params = { message_id: message.uuid, reactor: publicAccount(account), emoji };
  tx.emit(counted("events.reactionRemoved", params, message.conversation_uuid, seq));
}

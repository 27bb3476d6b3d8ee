import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Reaction } from "../records.ts";
import { emoji, uuid } from "../text/fields.ts";

const target = { message_id: uuid, emoji };

export const setMessageReaction = operation({
  name: "setMessageReaction",
  socket: "reactions.set",
  agents: true,
  summary:
    "Toggles a reaction, or removes it with `remove`; returns the Reaction if one was added.",
  input: z.object({ ...target, remove: z.boolean().optional() }),
  output: Reaction.optional(),
  errors: ["forbidden", "not_found", "conflict"],
});

export const addReaction = operation({
  name: "addReaction",
  socket: "reactions.add",
  agents: true,
  summary: "Adds a reaction; one that already exists is returned unchanged.",
  input: z.object(target),
  output: Reaction,
  errors: ["forbidden", "not_found", "conflict"],
});

export const removeReaction = operation({
  name: "removeReaction",
  socket: "reactions.remove",
  agents: true,
  summary: "Removes a reaction; succeeds also if there is none.",
  input: z.object(target),
  errors: ["forbidden", "not_found"],
});

export const getMessageReactions = operation({
  name: "getMessageReactions",
  socket: "reactions.list",
  agents: true,
  summary: "Lists the reactions to a message, oldest first.",
  input: z.object({
    message_id: uuid,
    emoji: emoji.optional().meta({ description: "Only reactions with this emoji." }),
    cursor,
    limit,
  }),
  output: page(Reaction),
  errors: ["forbidden", "not_found"],
});

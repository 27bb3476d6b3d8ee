import { z } from "zod";
import { operation } from "../operation.ts";
import { ChatState, Conversation } from "../records.ts";
import { uuid } from "../text/fields.ts";

const SETTABLE = ["notify", "muted_until", "pinned", "archived"] as const;

export const setChatState = operation({
  name: "setChatState",
  socket: "conversations.set_state",
  summary:
    "Changes the caller's own view of a conversation: of what they are notified, and whether it is pinned or archived.",
  cost: { call: 3 },
  input: z
    .object({
      chat_id: uuid,
      notify: ChatState.shape.notify.optional(),
      muted_until: z.iso.datetime({ offset: true }).nullable().optional().meta({
        description: "A time in the past is the same as null: not muted.",
      }),
      pinned: z.boolean().optional().meta({
        description: "At most 20 conversations of an account are pinned: a further one is 409.",
      }),
      archived: z.boolean().optional(),
    })
    .refine((given) => SETTABLE.some((name) => given[name] !== undefined), {
      message: `is required, or another one of ${SETTABLE.join(", ")}`,
      path: ["notify"],
    })
    .meta({ anyOf: SETTABLE.map((name) => ({ required: [name] })) }),
  output: Conversation,
  errors: ["forbidden", "not_found", "conflict"],
});

export const clearChat = operation({
  name: "clearChat",
  socket: "conversations.clear",
  summary:
    "Removes everything so far from the caller's view of a conversation, which leaves their lists until something new comes.",
  cost: { call: 5 },
  input: z.object({
    chat_id: uuid,
    erase: z.boolean().optional().meta({
      description:
        "True: erases a conversation in which the caller is the only person, for everybody and for good. With another person in it: 409. Agents, hooks and deleted accounts are not people.",
    }),
  }),
  errors: ["forbidden", "not_found", "conflict"],
});

export const markUnread = operation({
  name: "markUnread",
  socket: "conversations.mark_unread",
  summary: "Moves the caller's own read position back, so that messages above `seq` are unread.",
  cost: { call: 2 },
  input: z.object({
    chat_id: uuid,
    seq: z.int().min(0).meta({
      description:
        "The counter value after which messages are unread, also those of the caller. A value that is not below `last_read_seq` changes nothing, and one below `cleared_seq` counts as that. Others still see how far the caller has read.",
    }),
  }),
  output: z.object({ unread_count: z.int() }),
  errors: ["forbidden", "not_found"],
});

export const getUnread = operation({
  name: "getUnread",
  socket: "conversations.unread",
  summary: "Returns what a badge shows of all conversations of the caller, archived ones included.",
  cost: { call: 20 },
  output: z.object({
    conversations: z.int().meta({
      description:
        "Those with unread messages. Of those that are muted, or whose level is `none`, the ones with unread mentions.",
    }),
    messages: z.int().meta({
      description:
        "The sum of `unread_count` over the conversations that are neither muted nor of the level `none`.",
    }),
    mentions: z.int().meta({ description: "Unread mentions in all conversations." }),
    threads: z.int().meta({
      description:
        "Threads that the caller follows with unread replies, in conversations that are not muted.",
    }),
  }),
});

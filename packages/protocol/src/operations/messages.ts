import { z } from "zod";
import { cursor, exclusive, limit, operation, page } from "../operation.ts";
import { Account, Conversation, ConversationChange, Message } from "../records.ts";
import { content, historyId, text, uuid } from "../text.ts";

export const MAX_CONTENT_BYTES = 32_768;

const messageContent = content(MAX_CONTENT_BYTES);
const messageIds = z.array(uuid).min(1).max(100);

export const sendMessage = operation({
  name: "sendMessage",
  socket: "messages.send",
  summary: "Writes a message; one `client_msg_id` makes one message, however often it is sent.",
  rate: "messages",
  input: z.object({
    chat_id: uuid,
    content: messageContent,
    client_msg_id: text(1, 64).optional(),
    reply_to_id: uuid.optional(),
  }),
  output: Message,
  errors: ["forbidden", "not_found"],
});

export const getChatHistory = operation({
  name: "getChatHistory",
  socket: "messages.history",
  summary: "Returns a page of messages, oldest first: the latest, or those next to a message.",
  input: exclusive(
    z.object({
      chat_id: uuid,
      before: uuid.optional(),
      after: uuid.optional(),
      around: uuid.optional(),
      limit,
    }),
    "before",
    "after",
    "around",
  ),
  output: z.object({
    items: z.array(Message),
    has_more: z.boolean().meta({
      description: "Whether more lie beyond the page in the direction asked for.",
    }),
    changes: z.array(ConversationChange).meta({
      description:
        "Changes of the group between these messages, and beyond them where the page ends the history; the latest 500 of them. Pages next to each other leave none out.",
    }),
  }),
  errors: ["forbidden", "not_found"],
});

export const getMessage = operation({
  name: "getMessage",
  socket: "messages.get",
  summary: "Returns one message.",
  input: z.object({ message_id: uuid }),
  output: Message,
  errors: ["forbidden", "not_found"],
});

export const editMessage = operation({
  name: "editMessage",
  socket: "messages.edit",
  summary: "Changes the content of one of the caller's own messages.",
  input: z.object({ message_id: uuid, content: messageContent }),
  output: Message,
  errors: ["forbidden", "not_found"],
});

export const deleteMessages = operation({
  name: "deleteMessages",
  socket: "messages.delete",
  summary: "Deletes messages for everyone: all of those named, or none.",
  input: z.object({ chat_id: uuid, message_ids: messageIds }),
  errors: ["forbidden", "not_found"],
});

export const deleteMessagesForMe = operation({
  name: "deleteMessagesForMe",
  socket: "messages.delete_for_me",
  summary: "Hides messages from the caller alone, for good.",
  input: z.object({ chat_id: uuid, message_ids: messageIds }),
  errors: ["forbidden", "not_found"],
});

const Ahead = z.object({ conversation_id: uuid, seq: z.int() });

export const getUpdates = operation({
  name: "getUpdates",
  socket: "sync.updates",
  summary:
    "Returns what changed in a conversation since a counter, with all that still streams, or which conversations changed.",
  input: z
    .object({
      chat_id: uuid.optional(),
      since_seq: z.int().min(0).optional(),
      known: z
        .record(uuid, z.int().min(0))
        .optional()
        .meta({ description: "Counters the caller has, by conversation; without `chat_id`." }),
      accounts_since: z.int().min(0).optional().meta({
        description: "The `accounts_seq` of the last answer: asks for names that are newer.",
      }),
      own_since: z.int().min(0).optional().meta({
        description: "The `own_seq` of the last answer: asks for what the caller hid since.",
      }),
      limit,
    })
    .refine(({ chat_id, since_seq }) => chat_id === undefined || since_seq !== undefined, {
      message: "is required with a conversation",
      path: ["since_seq"],
    })
    .refine(
      ({ chat_id, known, accounts_since, own_since }) =>
        [chat_id, known, accounts_since, own_since].some((given) => given !== undefined),
      { message: "is required without a conversation", path: ["known"] },
    )
    .meta({
      anyOf: [
        { required: ["chat_id", "since_seq"] },
        ...["known", "accounts_since", "own_since"].map((field) => ({
          required: [field],
          not: { required: ["chat_id"] },
        })),
      ],
    }),
  output: z.union([
    z.object({
      messages: z.array(Message),
      deleted_ids: z.array(uuid),
      changes: z.array(ConversationChange).meta({ description: "Changes of the group since." }),
      conversation: Conversation,
      reads: z.record(z.string(), z.int()).meta({
        description: "How far the people among the participants shown have read, by username.",
      }),
      seq: z.int().meta({ description: "Where the next call goes on." }),
      has_more: z.boolean(),
      history_id: historyId,
    }),
    z.object({
      ahead: z.array(Ahead),
      behind: z.array(Ahead).meta({
        description: "Those whose known counter is above the server's: it is of another history.",
      }),
      new: z.array(Ahead),
      gone: z.array(uuid),
      accounts: z.array(Account).meta({
        description:
          "With `accounts_since`: the caller, the caller's agents and those in the caller's conversations who have new names.",
      }),
      accounts_seq: z.int().meta({ description: "The next `accounts_since`." }),
      hidden: z.array(z.object({ conversation_id: uuid, ids: z.array(uuid) })).meta({
        description: "With `own_since`: messages that the caller deleted for themselves.",
      }),
      own_seq: z.int().meta({ description: "The next `own_since`." }),
      has_more: z.boolean().meta({ description: "Whether to ask again, with these two." }),
      history_id: historyId,
    }),
  ]),
  errors: ["forbidden", "not_found"],
});

export const searchMessages = operation({
  name: "searchMessages",
  socket: "messages.search",
  summary: "Searches the text of the caller's conversations, newest first.",
  rate: "searches",
  input: z.object({
    query: text(1, 256).meta({
      description:
        "Words that all have to occur; the last may be the beginning of one. In scripts without spaces any part of a text is found.",
    }),
    chat_id: uuid.optional(),
    cursor,
    limit,
  }),
  output: page(
    z.object({
      message: Message,
      snippet: z.string().meta({ description: "An excerpt; what matched stands between `**`." }),
    }),
  ),
  errors: ["forbidden", "not_found"],
});

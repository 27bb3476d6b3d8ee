import { z } from "zod";
import { allOf, cursor, exclusive, limit, operation, page } from "../operation.ts";
import {
  Account,
  BlockList,
  ChatState,
  Conversation,
  ConversationChange,
  Message,
} from "../records.ts";
import {
  BLANK,
  emptiableContent,
  entries,
  historyId,
  isBlank,
  jsonObject,
  text,
  uuid,
} from "../text/fields.ts";

export const MAX_CONTENT_BYTES = 32_768;

/** Files that a message can have; the server's `files_per_message` may be lower. */
const MAX_FILES = 10;

/** Conversations in one overview: more than fit into the default `frame_bytes`. */
const MAX_KNOWN = 10_000;

const messageContent = emptiableContent(MAX_CONTENT_BYTES).meta({
  description: "May be empty if the message has files.",
});
const fileIds = z
  .array(uuid)
  .min(1)
  .max(MAX_FILES)
  .refine((ids) => new Set(ids).size === ids.length, { message: "must not repeat a file" });
const messageIds = z.array(uuid).min(1).max(100);

export const sendMessage = operation({
  name: "sendMessage",
  socket: "messages.send",
  policy: { field: "files", input: "file_ids" },
  agents: true,
  summary: "Sends a message; sending the same `client_msg_id` again returns the first message.",
  rate: "messages",
  cost: { call: 1, each: { file_ids: 1 } },
  input: z
    .object({
      chat_id: uuid,
      content: messageContent.default("").meta({
        description: "May be empty or left out if the message has files.",
      }),
      file_ids: fileIds.optional().meta({
        description:
          "Files that the caller uploaded to this conversation: ready, and not part of a message yet. They are deleted with the message.",
      }),
      client_msg_id: text(1, 64).optional().meta({
        description:
          "The client's own identifier of the message, returned in its record and event. Makes a retry safe: each sender and conversation has at most one message per identifier.",
      }),
      reply_to_id: uuid.optional(),
      metadata: jsonObject.optional().meta({
        description:
          "A JSON object of at most 4 KiB, which all participants receive with the message. Only a service key that acts for a person may give it.",
      }),
    })
    .refine(({ content, file_ids }) => file_ids !== undefined || !isBlank(content), {
      message: BLANK,
      path: ["content"],
      // Also beside other wrong fields, so that an answer names all of them.
      when: ({ value }) => typeof (value as { content?: unknown } | null)?.content === "string",
    })
    .meta({
      anyOf: [
        { required: ["file_ids"] },
        { required: ["content"], properties: { content: { minLength: 1 } } },
      ],
    }),
  output: Message,
  errors: ["forbidden", "not_found", "conflict"],
});

export const getChatHistory = operation({
  name: "getChatHistory",
  socket: "messages.history",
  agents: true,
  summary:
    "Returns a page of messages, oldest first: the latest ones, or those before, after or around a message.",
  cost: { call: 5 },
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
      description:
        "Whether there are more messages in the requested direction; with `around`, in either.",
    }),
    changes: z.array(ConversationChange).meta({
      description:
        "Changes of the group among these messages, at most the latest 500. The first and the last page of the history include those before and after all messages, so that adjacent pages miss none.",
    }),
  }),
  errors: ["forbidden", "not_found"],
});

export const getMessage = operation({
  name: "getMessage",
  socket: "messages.get",
  agents: true,
  summary: "Returns one message.",
  input: z.object({ message_id: uuid }),
  output: Message,
  errors: ["forbidden", "not_found"],
});

export const editMessage = operation({
  name: "editMessage",
  socket: "messages.edit",
  agents: true,
  summary: "Replaces the content of one of the caller's own messages; an edit starts no agent.",
  input: z.object({ message_id: uuid, content: messageContent }),
  output: Message,
  errors: ["forbidden", "not_found"],
});

export const deleteMessages = operation({
  name: "deleteMessages",
  socket: "messages.delete",
  agents: true,
  summary: "Deletes messages for everyone: all of those given, or none.",
  cost: { call: 3, each: { message_ids: 2 } },
  input: z.object({ chat_id: uuid, message_ids: messageIds }),
  errors: ["forbidden", "not_found"],
});

export const deleteMessagesForMe = operation({
  name: "deleteMessagesForMe",
  socket: "messages.delete_for_me",
  summary: "Hides messages from the caller permanently; the other participants still see them.",
  cost: { call: 1, each: { message_ids: 1 } },
  input: z.object({ chat_id: uuid, message_ids: messageIds }),
  errors: ["forbidden", "not_found"],
});

const Ahead = z.object({ conversation_id: uuid, seq: z.int() });

export const getUpdates = operation({
  name: "getUpdates",
  socket: "sync.updates",
  agents: true,
  summary:
    "Returns what changed in one conversation since a counter value, or, without `chat_id`, which conversations changed.",
  cost: { call: 5, each: { known: 0.05 } },
  input: z
    .object({
      chat_id: uuid.optional(),
      since_seq: z.int().min(0).optional(),
      known: entries(uuid, z.int().min(0), MAX_KNOWN).optional().meta({
        description:
          "The counter values the caller knows, by conversation. Conversations that are left out are listed as `new`. Only without `chat_id`.",
      }),
      accounts_since: z.int().min(0).optional().meta({
        description:
          "The `accounts_seq` of the last result: asks for accounts that changed since. Only without `chat_id`.",
      }),
      own_since: z.int().min(0).optional().meta({
        description:
          "The `own_seq` of the last result: asks for messages the caller hid since, and for changes of their views of conversations. Only without `chat_id`.",
      }),
      limit: limit.meta({
        description:
          "The number of messages. Default and maximum: the server's `page_size` (100 by default).",
      }),
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
          not: allOf("chat_id"),
        })),
      ],
    }),
  output: z.union([
    z.object({
      messages: z.array(Message).meta({
        description:
          "The messages that changed since `since_seq` and all that are streaming, as they are now.",
      }),
      deleted_ids: z.array(uuid),
      changes: z
        .array(ConversationChange)
        .meta({ description: "Changes of the group since `since_seq`." }),
      conversation: Conversation,
      reads: z.record(z.string(), z.int()).meta({
        description: "How far each person among the listed participants has read, by username.",
      }),
      seq: z.int().meta({ description: "The `since_seq` of the next call." }),
      has_more: z.boolean().meta({ description: "Whether to call again, with `seq`." }),
      history_id: historyId,
    }),
    z.object({
      ahead: z.array(Ahead),
      behind: z.array(Ahead).meta({
        description:
          "Conversations whose `known` value is above the server's counter: it belongs to another history.",
      }),
      new: z.array(Ahead),
      gone: z.array(uuid),
      accounts: z.array(Account).meta({
        description:
          "With `accounts_since`: those with another name or picture, and new and deleted ones, among the caller, the caller's agents, and those who take or took part in the caller's conversations.",
      }),
      accounts_seq: z.int().meta({ description: "The `accounts_since` of the next call." }),
      hidden: z.array(z.object({ conversation_id: uuid, ids: z.array(uuid) })).meta({
        description: "With `own_since`: the messages that the caller hid.",
      }),
      states: z
        .array(
          z.object({
            conversation_id: uuid,
            state: ChatState,
            last_read_seq: z.int(),
            cleared_seq: z.int(),
          }),
        )
        .meta({
          description: "With `own_since`: the caller's views of conversations that changed since.",
        }),
      own_seq: z.int().meta({ description: "The `own_since` of the next call." }),
      blocked: BlockList,
      has_more: z.boolean().meta({
        description: "Whether to call again, with `accounts_seq` and `own_seq`.",
      }),
      history_id: historyId,
    }),
  ]),
  errors: ["forbidden", "not_found"],
});

export const searchMessages = operation({
  name: "searchMessages",
  socket: "messages.search",
  agents: true,
  summary: "Searches the messages of the caller's conversations, newest first.",
  rate: "searches",
  cost: { call: 40 },
  input: z.object({
    query: text(1, 256).meta({
      description:
        "A message matches if it contains all of these words; the last may be the beginning of a word. In scripts without spaces any part of a text matches.",
    }),
    chat_id: uuid.optional(),
    cursor,
    limit,
  }),
  output: page(
    z.object({
      message: Message,
      snippet: z.string().meta({ description: "An excerpt with the matches between `**`." }),
    }),
  ),
  errors: ["forbidden", "not_found"],
});

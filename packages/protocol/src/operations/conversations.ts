import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Conversation, ConversationDetail } from "../records.ts";
import { line, username, uuid } from "../text.ts";

const usernames = z.array(username).max(1000);
const seq = z.int().min(0);

export const startChat = operation({
  name: "startChat",
  socket: "conversations.create",
  summary: "Starts a group, or returns the direct conversation with one other participant.",
  input: z.object({
    usernames,
    title: line(1, 128).optional(),
    kind: z
      .enum(["direct", "group"])
      .optional()
      .meta({ description: "`group` makes a group of any size, even without a title." }),
  }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const getChats = operation({
  name: "getChats",
  socket: "conversations.list",
  summary: "Lists the caller's conversations, latest activity first.",
  input: z.object({ cursor, limit }),
  output: page(Conversation),
});

export const getChat = operation({
  name: "getChat",
  socket: "conversations.get",
  summary: "Returns one conversation with all participants and how far each has read.",
  input: z.object({ chat_id: uuid }),
  output: ConversationDetail,
  errors: ["forbidden", "not_found"],
});

export const setChatTitle = operation({
  name: "setChatTitle",
  socket: "conversations.rename",
  summary: "Renames a group.",
  input: z.object({ chat_id: uuid, title: line(1, 128) }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const addChatMembers = operation({
  name: "addChatMembers",
  socket: "conversations.add_members",
  summary: "Adds people, or agents of the caller, to a group.",
  input: z.object({ chat_id: uuid, usernames: usernames.min(1) }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const removeChatMember = operation({
  name: "removeChatMember",
  socket: "conversations.remove_member",
  summary: "Removes a participant, and with a person their agents, from a group.",
  input: z.object({ chat_id: uuid, username }),
  errors: ["forbidden", "not_found"],
});

export const leaveChat = operation({
  name: "leaveChat",
  socket: "conversations.leave",
  summary: "Leaves a group, taking the caller's agents along.",
  input: z.object({ chat_id: uuid }),
  errors: ["forbidden", "not_found"],
});

export const readChat = operation({
  name: "readChat",
  socket: "conversations.read",
  summary: "Marks a conversation as read up to a place in it.",
  input: z.object({ chat_id: uuid, seq }),
  output: z.object({ unread_count: z.int() }),
  errors: ["forbidden", "not_found"],
});

import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { Conversation, ConversationDetail } from "../records.ts";
import { line, pictureId, username, uuid } from "../text/fields.ts";

const usernames = z.array(username).max(1000);
const seq = z.int().min(0).meta({
  description: "The counter value to read up to, such as a message's `seq`. It never moves back.",
});

export const startChat = operation({
  name: "startChat",
  socket: "conversations.create",
  throttles: [{ name: "strangers", of: "In a group, each person who does not know the caller" }],
  policy: "start_chats",
  summary:
    "Starts a group, or returns the direct conversation with one other account, which it creates if there is none.",
  cost: { call: 5, each: { usernames: 2 } },
  input: z.object({
    usernames: usernames.meta({
      description: "The other participants. Only its owner may invite an agent.",
    }),
    title: line(1, 128).optional().meta({
      description: "Of a group, or of a new conversation with one's own agent.",
    }),
    kind: z.enum(["direct", "group"]).optional().meta({
      description:
        "Default: `direct` with one other participant and no title, otherwise `group`. A group may have any size and needs no title.",
    }),
    new: z.boolean().optional().meta({
      description:
        'True, with `kind: "direct"` and one of the caller\'s agents: starts another conversation, in which the agent knows nothing of the others. Without it, the latest one is returned.',
    }),
  }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const getChats = operation({
  name: "getChats",
  socket: "conversations.list",
  agents: true,
  summary: "Lists the caller's conversations, most recent activity first.",
  cost: { call: 20 },
  input: z.object({
    archived: z.boolean().optional().meta({
      description: "Only those that the caller has archived, or only the others. Left out: all.",
    }),
    cursor,
    limit,
  }),
  output: page(Conversation),
});

export const getChat = operation({
  name: "getChat",
  socket: "conversations.get",
  agents: true,
  summary:
    "Returns one conversation with all of its participants and how far each person has read.",
  cost: { call: 3 },
  input: z.object({ chat_id: uuid }),
  output: ConversationDetail,
  errors: ["forbidden", "not_found"],
});

export const setChatTitle = operation({
  name: "setChatTitle",
  socket: "conversations.rename",
  summary: "Changes the title of a group, or of a conversation with one of the caller's agents.",
  input: z.object({ chat_id: uuid, title: line(1, 128) }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const setChatPicture = operation({
  name: "setChatPicture",
  socket: "conversations.set_picture",
  summary: "Changes the picture of a group, and deletes the former one.",
  input: z.object({ chat_id: uuid, file_id: pictureId }),
  output: Conversation,
  errors: ["forbidden", "not_found", "conflict"],
});

export const addChatMembers = operation({
  name: "addChatMembers",
  socket: "conversations.add_members",
  throttles: [{ name: "strangers", of: "Each person who does not know the caller" }],
  policy: "start_chats",
  summary: "Adds people, or the caller's own agents, to a group.",
  cost: { call: 5, each: { usernames: 2 } },
  input: z.object({ chat_id: uuid, usernames: usernames.min(1) }),
  output: Conversation,
  errors: ["forbidden", "not_found"],
});

export const removeChatMember = operation({
  name: "removeChatMember",
  socket: "conversations.remove_member",
  summary: "Removes a participant from a group; a person's agents are removed with them.",
  cost: { call: 5 },
  input: z.object({ chat_id: uuid, username }),
  errors: ["forbidden", "not_found"],
});

export const leaveChat = operation({
  name: "leaveChat",
  socket: "conversations.leave",
  summary: "Leaves a group, together with the caller's agents.",
  cost: { call: 5 },
  input: z.object({
    chat_id: uuid,
    final: z.boolean().optional().meta({
      description:
        "True: nobody can add the caller to this group again. Also possible after leaving it, or being removed.",
    }),
  }),
  errors: ["forbidden", "not_found"],
});

export const readChat = operation({
  name: "readChat",
  socket: "conversations.read",
  agents: true,
  summary: "Marks a conversation as read up to the given `seq`.",
  input: z.object({ chat_id: uuid, seq }),
  output: z.object({ unread_count: z.int() }),
  errors: ["forbidden", "not_found"],
});

import { z } from "zod";
import { operation } from "../operation.ts";
import { GroupAgent } from "../records.ts";
import { username, uuid } from "../text/fields.ts";

const target = { chat_id: uuid, agent_username: username };
const errors = ["forbidden", "not_found"] as const;

export const getGroupAgents = operation({
  name: "getGroupAgents",
  socket: "groups.agents",
  summary: "Lists the agents of a group with the mode of each.",
  input: z.object({ chat_id: uuid }),
  output: z.object({ items: z.array(GroupAgent) }),
  errors,
});

export const addGroupAgent = operation({
  name: "addGroupAgent",
  socket: "groups.add_agent",
  policy: "start_chats",
  summary: "Adds one of the caller's agents to a group, or changes the mode of one that is in it.",
  input: z.object({
    ...target,
    always_on: z.boolean().optional().meta({
      description:
        "True: the agent answers every human message. False: it answers mentions only. Default: false for an agent that is added; an agent that is in the group keeps its mode.",
    }),
  }),
  errors,
});

export const removeGroupAgent = operation({
  name: "removeGroupAgent",
  socket: "groups.remove_agent",
  summary: "Removes one of the caller's agents from a group.",
  input: z.object(target),
  errors,
});

export const setGroupAgentMode = operation({
  name: "setGroupAgentMode",
  socket: "groups.set_agent_mode",
  summary: "Sets whether one of the caller's agents answers every human message or only mentions.",
  input: z.object({ ...target, always_on: z.boolean() }),
  errors,
});

export const stopChatAgents = operation({
  name: "stopChatAgents",
  socket: "groups.stop_agents",
  summary: "Stops every running agent turn of a conversation and cancels every waiting one.",
  input: z.object({ chat_id: uuid }),
  output: z.object({
    stopped: z.int().meta({ description: "How many running turns were stopped." }),
    cancelled: z.int().meta({ description: "How many waiting turns were cancelled." }),
  }),
  errors,
});

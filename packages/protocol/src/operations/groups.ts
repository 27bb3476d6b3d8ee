import { z } from "zod";
import { operation } from "../operation.ts";
import { GroupAgent } from "../records.ts";
import { username, uuid } from "../text.ts";

const target = { chat_id: uuid, agent_username: username };
const errors = ["forbidden", "not_found"] as const;

export const getGroupAgents = operation({
  name: "getGroupAgents",
  socket: "groups.agents",
  summary: "Lists a group's agents and when each of them answers.",
  input: z.object({ chat_id: uuid }),
  output: z.object({ items: z.array(GroupAgent) }),
  errors,
});

export const addGroupAgent = operation({
  name: "addGroupAgent",
  socket: "groups.add_agent",
  summary: "Adds an agent of the caller to a group, or changes the mode of one that is there.",
  input: z.object({
    ...target,
    always_on: z.boolean().optional().meta({
      description:
        "Whether it answers every human message. By default a new one answers mentions only, and one that is there keeps its mode.",
    }),
  }),
  errors,
});

export const removeGroupAgent = operation({
  name: "removeGroupAgent",
  socket: "groups.remove_agent",
  summary: "Takes an agent of the caller out of a group.",
  input: z.object(target),
  errors,
});

export const setGroupAgentMode = operation({
  name: "setGroupAgentMode",
  socket: "groups.set_agent_mode",
  summary: "Sets whether an agent answers every human message or only mentions.",
  input: z.object({ ...target, always_on: z.boolean() }),
  errors,
});

export const stopChatAgents = operation({
  name: "stopChatAgents",
  socket: "groups.stop_agents",
  summary: "The brake: ends every running turn of a conversation and drops every waiting one.",
  input: z.object({ chat_id: uuid }),
  output: z.object({ stopped: z.int(), cancelled: z.int() }),
  errors,
});

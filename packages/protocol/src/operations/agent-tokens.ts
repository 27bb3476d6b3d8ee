import { z } from "zod";
import { operation } from "../operation.ts";
import { AgentToken } from "../records.ts";
import { line, username, uuid } from "../text/fields.ts";

export const createAgentToken = operation({
  name: "createAgentToken",
  socket: "agents.create_token",
  sensitive: true,
  policy: "agents",
  summary:
    "Creates a token with which a program connects as one of the caller's external agents; the token is shown only once.",
  input: z.object({
    agent_username: username,
    name: line(1, 64).optional().meta({ description: "Tells the token from others." }),
  }),
  output: z.object({ id: uuid, token: z.string().meta({ description: "`pla_…`" }) }),
  errors: ["not_found", "conflict"],
});

export const getAgentTokens = operation({
  name: "getAgentTokens",
  socket: "agents.tokens",
  summary: "Lists the tokens of the caller's external agents, oldest first, without their values.",
  output: z.object({ items: z.array(AgentToken) }),
});

export const revokeAgentToken = operation({
  name: "revokeAgentToken",
  socket: "agents.revoke_token",
  summary: "Revokes a token of one of the caller's external agents, and closes its sockets.",
  input: z.object({ token_id: uuid }),
  errors: ["not_found"],
});

import { z } from "zod";
import { operation } from "../operation.ts";
import { ToolServer } from "../records.ts";
import { line, text, uuid } from "../text/fields.ts";

const server = z.object({ server_id: uuid });
const name = line(1, 64).meta({
  description: "A name that the caller's other servers do not have.",
});
const url = text(1, 2048).meta({
  description:
    "The https address of the server's streamable HTTP endpoint. Private addresses, and http, need the setting `PARLEY_PRIVATE_ADDRESSES=allow`.",
  examples: ["https://tools.example.com/mcp"],
});
const token = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[\x21-\x7e]*$/, "must be one line of printable ASCII characters")
  .meta({
    description: "Sent to the server as bearer token. It is stored encrypted and never returned.",
  });

export const addToolServer = operation({
  name: "addToolServer",
  socket: "tools.add_server",
  throttles: ["tool_contacts"],
  sensitive: true,
  policy: "agents",
  summary:
    "Adds an MCP server, whose tools the caller's agents can be granted. It is asked for its tools once.",
  input: z.object({
    name,
    url,
    token: token.optional(),
  }),
  output: ToolServer,
  errors: ["conflict"],
});

export const getToolServers = operation({
  name: "getToolServers",
  socket: "tools.servers",
  summary: "Lists the caller's tool servers and those that the operator offers to everybody.",
  output: z.object({ items: z.array(ToolServer) }),
});

export const updateToolServer = operation({
  name: "updateToolServer",
  socket: "tools.update_server",
  throttles: [{ name: "tool_contacts", of: "A new `url` or `token`" }],
  sensitive: true,
  policy: "agents",
  summary:
    "Changes the name, the address or the token of a tool server. What agents were granted of it stays. With another address or a token, the server is asked for its tools again. Another address gets neither the token nor what was authorized by OAuth for the earlier one: give a token with it, or authorize it again.",
  input: server.extend({
    name: name.optional(),
    url: url.optional(),
    token: token.nullable().optional().meta({
      description:
        "Replaces the token, and what was authorized by OAuth. Null removes the token alone.",
    }),
  }),
  output: ToolServer,
  errors: ["forbidden", "not_found", "conflict"],
});

export const refreshToolServer = operation({
  name: "refreshToolServer",
  socket: "tools.refresh_server",
  throttles: ["tool_contacts"],
  policy: "agents",
  summary: "Asks a tool server for its tools again.",
  input: server,
  output: ToolServer,
  errors: ["not_found"],
});

export const authorizeToolServer = operation({
  name: "authorizeToolServer",
  socket: "tools.authorize_server",
  throttles: ["tool_contacts"],
  sensitive: true,
  policy: "agents",
  summary:
    "Begins the authorization of a tool server by OAuth. The caller opens the address in a browser. The authorization server sends the browser back to `/oauth/tool-servers/callback`, with the parameters of `finishToolServer`.",
  input: server,
  output: z.object({
    url: z.string().meta({ description: "The page of the authorization server." }),
  }),
  errors: ["forbidden", "not_found", "conflict"],
});

export const finishToolServer = operation({
  name: "finishToolServer",
  socket: "tools.finish_server",
  throttles: ["tool_contacts"],
  policy: "agents",
  summary:
    "Ends the authorization of a tool server, once and within ten minutes, and asks the server for its tools. Only the person who began it can end it.",
  input: z.object({
    state: text(1, 512),
    code: text(1, 4096).optional().meta({
      description:
        "Left out if the authorization server sent an error: the server stays as it is then.",
    }),
    iss: text(1, 2048)
      .optional()
      .meta({ description: "Required if the authorization server sent it." }),
  }),
  output: ToolServer,
  errors: ["forbidden", "conflict"],
});

export const removeToolServer = operation({
  name: "removeToolServer",
  socket: "tools.remove_server",
  summary: "Removes a tool server with its token and everything that agents were granted of it.",
  input: server,
  errors: ["forbidden", "not_found"],
});

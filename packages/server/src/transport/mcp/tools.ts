import type { Tool } from "@modelcontextprotocol/server";
import { type Operation, type OperationName, operations } from "@parley/protocol";
import type { z } from "zod";
import { createSchemaBook } from "../reference/schemas.ts";
import { AskAgentInput } from "./ask-agent.ts";

/** What a client may assume of a tool. Clients ask people before they call some of them. */
const reads = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  /** Whether it reaches others: people who read it, or agents that act on it. */
  openWorldHint: false,
};
const adds = { ...reads, readOnlyHint: false };
const removes = { ...adds, destructiveHint: true };
/** Each call sends another message. */
const sends = { ...adds, idempotentHint: false, openWorldHint: true };

/** The operations that are tools, in the order in which they are listed. */
const offered = {
  getMe: reads,
  getUsers: reads,
  getChats: reads,
  searchMessages: reads,
  getChatHistory: reads,
  getMessage: reads,
  sendMessage: sends,
  addReaction: adds,
  removeReaction: removes,
} as const satisfies Partial<Record<OperationName, typeof reads>>;

/** The tool that calls several operations. */
export const ASK_AGENT = "ask_agent";

/** `getChatHistory` is the tool `get_chat_history`. */
const toolName = (operation: string) =>
  operation.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The operations that tools call, by the names of the tools. */
export const operationOf: ReadonlyMap<string, OperationName> = new Map(
  (Object.keys(offered) as (keyof typeof offered)[]).map((name) => [toolName(name), name]),
);

/** All tools, in the order in which they are listed. */
export const listings: Tool[] = [
  ...Object.entries(offered).map(([name, annotations]) => {
    const { summary, input }: Operation = operations[name as OperationName];
    return {
      name: toolName(name),
      description: summary,
      inputSchema: inputSchemaOf(input),
      annotations,
    };
  }),
  {
    name: ASK_AGENT,
    description:
      "Sends a message to an agent and waits for its answer. If `status` is `waiting`, read the answer later with get_chat_history.",
    inputSchema: inputSchemaOf(AskAgentInput),
    annotations: sends,
  },
];

/**
 * The schema of a tool's arguments. Models' APIs refuse alternatives at the top of a schema, so those
 * are left out: a call that breaks them fails with a sentence that explains it.
 */
function inputSchemaOf(input: z.ZodType): Tool["inputSchema"] {
  const book = createSchemaBook("#/$defs/", "draft-2020-12");
  const { anyOf, allOf, not, ...schema } = book.input(input);
  return { ...(schema as Partial<Tool["inputSchema"]>), type: "object" };
}

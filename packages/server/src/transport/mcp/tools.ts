import type { Tool } from "@modelcontextprotocol/server";
import { type Operation, type OperationName, operations } from "@parley/protocol";
import type { z } from "zod";
import { createSchemaBook } from "../reference/schemas.ts";

/** What a client may assume of a tool. Clients ask people before they call some of them. */
interface Hints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  /** Whether it reaches others: people who read it, or agents that act on it. */
  readonly openWorldHint: boolean;
}

const reads: Hints = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};
const adds: Hints = { ...reads, readOnlyHint: false };
const removes: Hints = { ...adds, destructiveHint: true };
/** Each call sends another message. */
export const sends: Hints = { ...adds, idempotentHint: false, openWorldHint: true };

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
} as const satisfies Partial<Record<OperationName, Hints>>;

/** A tool as clients see it in a list. */
export type ToolListing = Tool & { readonly annotations: Hints };

/** A tool that calls one operation with its arguments. */
export interface OperationTool {
  readonly operation: OperationName;
  readonly listing: ToolListing;
}

export const operationTools = (): OperationTool[] =>
  Object.entries(offered).map(([name, annotations]) => {
    const contract: Operation = operations[name as OperationName];
    return {
      operation: contract.name as OperationName,
      listing: {
        name: toolName(contract.name),
        description: contract.summary,
        inputSchema: inputSchemaOf(contract.input),
        annotations,
      },
    };
  });

/** `getChatHistory` is the tool `get_chat_history`. */
const toolName = (operation: string) =>
  operation.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * The schema of a tool's arguments. Models' APIs refuse alternatives at the top of a schema, so those
 * are left out: a call that breaks them fails with a sentence that explains it.
 */
export function inputSchemaOf(input: z.ZodType): Tool["inputSchema"] {
  const { anyOf, allOf, not, ...schema } = createSchemaBook("#/$defs/", "draft-2020-12").input(
    input,
  );
  return { ...(schema as Partial<Tool["inputSchema"]>), type: "object" };
}

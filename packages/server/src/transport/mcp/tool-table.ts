import type { OperationName } from "@parley/protocol";
import { askAgentListing } from "./ask-agent.ts";
import { operationTools, type ToolListing } from "./tools.ts";

const tools = operationTools();

/** All tools, in the order in which they are listed. */
export const listings: ToolListing[] = [...tools.map(({ listing }) => listing), askAgentListing];

/** The operations that tools call, by the names of the tools. `ask_agent` calls several. */
export const operationOf: ReadonlyMap<string, OperationName> = new Map(
  tools.map(({ listing, operation }) => [listing.name, operation]),
);

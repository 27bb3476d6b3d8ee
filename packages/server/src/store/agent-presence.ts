import type { Awaitable } from "./awaitable.ts";

/** When a program was last connected, or made calls, as an external agent: on any node. */
export interface AgentPresenceReads {
  /** The agents among these that were seen within the last `withinMs`. */
  agentsSeen(accountIds: readonly number[], withinMs: number): Awaitable<number[]>;
}

export interface AgentPresenceWrites {
  /** Records that the agents are seen now. Ignores accounts that do not exist. */
  noteAgentsSeen(accountIds: readonly number[]): Awaitable<void>;
}

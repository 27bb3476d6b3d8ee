import type { Client } from "@parley/client";
import type { AgentProfile } from "@parley/protocol";
import { chatPath, navigate } from "../lib/router.ts";
import { hasKey } from "./keys.ts";

/** The part of the key that `key_tail` shows. No provider's key has this sign. */
const SANDBOX_TAIL = "~box";
/** The built-in model answers for keys that begin with `sandbox`; nothing leaves the server. */
const SANDBOX_KEY = `sandbox-web${SANDBOX_TAIL}`;

/** Whether the key of the agent is the one that «Try the sandbox» stores. */
export const isSandbox = ({ key_tail }: AgentProfile) => !!key_tail?.endsWith(SANDBOX_TAIL);

/** Stores a sandbox key unless the agent has a key or needs none, and opens the conversation with the agent. */
export async function trySandbox(client: Client, agent: AgentProfile): Promise<void> {
  await giveSandboxKey(client, agent.username);
  await openDirect(client, agent.username);
}

/** Keeps an existing key, such as one that was stored on another device. */
export async function giveSandboxKey(client: Client, username: string): Promise<void> {
  await client.model.refreshAgents();
  const agent = client.model.get("agents").find((each) => each.username === username);
  if (!agent || hasKey(agent)) return;
  await client.setAgentKey({ agent_username: agent.username, api_key: SANDBOX_KEY });
  await client.model.refreshAgents();
}

export async function openDirect(client: Client, username: string): Promise<void> {
  const chat = await client.startChat({ usernames: [username] });
  navigate(chatPath(chat.id));
}

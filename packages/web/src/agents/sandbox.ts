import type { Client } from "@parley/client";
import type { AgentProfile } from "@parley/protocol";
import { chatPath, navigate } from "../lib/router.ts";
import { hasKey } from "./keys.ts";

/** The built-in model answers for keys with this prefix; nothing leaves the server. */
const sandboxKey = () => `sandbox-${Math.random().toString(36).slice(2, 10)}`;

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
  await client.setAgentKey({ agent_username: agent.username, api_key: sandboxKey() });
  await client.model.refreshAgents();
}

export async function openDirect(client: Client, username: string): Promise<void> {
  const chat = await client.startChat({ usernames: [username] });
  navigate(chatPath(chat.id));
}

import type { Client } from "@parley/client";
import type { AgentProfile } from "@parley/protocol";
import { chatPath, navigate } from "../lib/router.ts";

/** A key that begins so is answered by the built-in model and never leaves the server. */
const sandboxKey = () => `sandbox-${Math.random().toString(36).slice(2, 10)}`;

/** From nothing to an agent that answers: a test key if there is none, and its conversation. */
export async function trySandbox(client: Client, agent: AgentProfile): Promise<void> {
  await giveSandboxKey(client, agent.username);
  await openDirect(client, agent.username);
}

/** Where there is a key, such as one just stored on another device, it stays. */
export async function giveSandboxKey(client: Client, username: string): Promise<void> {
  await client.model.refreshAgents();
  const agent = client.model.get("agents").find((each) => each.username === username);
  if (!agent || agent.key_configured) return;
  await client.setAgentKey({ provider: agent.provider, api_key: sandboxKey() });
  await client.model.refreshAgents();
}

export async function openDirect(client: Client, username: string): Promise<void> {
  const chat = await client.startChat({ usernames: [username] });
  navigate(chatPath(chat.id));
}

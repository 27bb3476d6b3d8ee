import { useAgents } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";

/** Whether the operator pays for the agent: its owner has stored no key, and needs none. */
export const isProvided = ({ key_source }: AgentProfile) => key_source === "operator";

/** Whether the agent can answer, whoever pays for it. An external one needs no key. */
export const hasKey = (agent: AgentProfile) =>
  agent.kind === "external" || agent.key_configured || isProvided(agent);

/** Whether one's own agent cannot answer yet; false while one's agents are not loaded. */
export const useLacksKey = (username: string) =>
  useAgents().some((agent) => agent.username === username && !hasKey(agent));

/** How keys usually begin, by provider id. */
const prefixes: Record<string, { pattern: RegExp; text: string }> = {
  claude: { pattern: /^sk-ant-/, text: "sk-ant-" },
  gpt: { pattern: /^sk-(?!ant-)/, text: "sk-" },
};

const SANDBOX = /^sandbox/i;
const USUAL_MIN_LENGTH = 16;

/** Removes what is often copied along: quotes, a variable assignment, `Bearer`. */
export const cleanKey = (text: string): string =>
  text
    .trim()
    .replace(/^(?:export\s+)?[A-Z][A-Z0-9_]*=/, "")
    .replace(/^(["'`])(.*)\1$/s, "$2")
    .replace(/^Bearer\s+/i, "")
    .trim();

/** Why a text cannot be a key; null if it can. */
export function keyProblem(key: string): string | null {
  if (key === "") return "Please fill this in.";
  if (/[•*…]{3}|\.{3}/.test(key))
    return "This is a masked key. Copy the whole of it, where it is shown once.";
  if (/\s/.test(key)) return "A key is one line without spaces. Was something else copied along?";
  if (!/^[\x21-\x7e]*$/.test(key))
    return "A key has only letters, digits and signs of a plain keyboard.";
  return key.length > 1024 ? "This is too long for a key." : null;
}

/** Why a key looks wrong; null if it does not. Not an error, since a gateway may use any format. */
export function keyDoubt(provider: string, key: string): string | null {
  if (SANDBOX.test(key)) return null;
  const usual = prefixes[provider];
  if (usual && !usual.pattern.test(key))
    return `Keys for this agent usually begin with «${usual.text}».`;
  return key.length < USUAL_MIN_LENGTH ? "This is shorter than keys usually are." : null;
}

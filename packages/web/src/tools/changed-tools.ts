import type { AgentProfile, ToolGrant } from "@parley/protocol";
import { sharedValue } from "../lib/shared-value.ts";
import { type Policy, policies } from "./grants.ts";

const KEY = "parley.changed-tools";

/** The policies of changed tools, by agent and then by `<server id> <tool>`. */
type Remembered = Readonly<Record<string, Readonly<Record<string, string>>>>;

const remembered = sharedValue(stored());

/**
 * The agent with the tools marked that changed since they were allowed. The server takes all grants of
 * an agent at once, as given for the tools of today: a change of one grant sets the changed tools to
 * «Ask» and clears their marks there. So this device remembers the marks, with the policies.
 */
export const useMarkedAgent = (agent: AgentProfile): AgentProfile =>
  withMarks(agent, remembered.use()[agent.username] ?? {});

export const markedAgent = (agent: AgentProfile): AgentProfile =>
  withMarks(agent, stored()[agent.username] ?? {});

/** Remembers which tools of the agent are changed, instead of those that were. */
export function rememberChanged(username: string, grants: readonly ToolGrant[]): void {
  const { [username]: _, ...others } = stored();
  const changed = grants.filter((grant) => grant.changed);
  const marks = Object.fromEntries(changed.map((grant) => [keyOf(grant), grant.policy]));
  const next = changed.length > 0 ? { ...others, [username]: marks } : others;
  localStorage.setItem(KEY, JSON.stringify(next));
  remembered.set(next);
}

function withMarks(agent: AgentProfile, marks: Readonly<Record<string, string>>): AgentProfile {
  const tools = agent.tools.map((grant) => {
    const policy = policyOf(marks[keyOf(grant)]);
    // Another policy was chosen since, on another device.
    const isMarked = policy !== undefined && grant.policy === "ask";
    return isMarked ? { ...grant, policy, changed: true } : grant;
  });
  return { ...agent, tools };
}

const keyOf = ({ server_id, tool }: ToolGrant) => `${server_id} ${tool}`;

const policyOf = (text: string | undefined): Policy | undefined =>
  policies.find(({ value }) => value === text)?.value;

function stored(): Remembered {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Remembered) : {};
  } catch {
    return {};
  }
}

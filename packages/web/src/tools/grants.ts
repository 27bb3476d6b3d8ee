import type { AgentProfile, ToolGrant, ToolServer } from "@parley/protocol";

export type Policy = ToolGrant["policy"];
type Grant = Pick<ToolGrant, "server_id" | "tool" | "policy"> & { changed?: boolean };

export const policies: readonly { value: Policy; label: string; meaning: string }[] = [
  { value: "ask", label: "Ask", meaning: "Every call waits for your approval." },
  {
    value: "direct",
    label: "In my own chats",
    meaning: "Runs at once in your own conversations with the agent, and asks you elsewhere.",
  },
  {
    value: "always",
    label: "Always",
    meaning: "Runs at once everywhere, also for other people who may use the agent.",
  },
];

/** What the agent may do with a tool; undefined if it may not use it. */
export const grantOf = ({ tools }: AgentProfile, serverId: string, tool: string) =>
  tools.find((grant) => grant.server_id === serverId && grant.tool === tool);

/** The new policy of one tool; null takes the grant away. */
export type GrantChange = Omit<Grant, "policy" | "changed"> & { policy: Policy | null };

/**
 * Returns a function that applies changes one after another: each begins with the outcome of the one
 * before it, which a change that fails leaves as it was. The first begins with what is given, and so does
 * the first after a `settle`.
 */
export function changesInOrder<State>() {
  let latest: Promise<State> | null = null;
  return async (
    current: State,
    change: (state: State) => Promise<State>,
    settle: () => Promise<void>,
  ): Promise<void> => {
    const before = latest ?? Promise.resolve(current);
    const changed = before.then(change);
    // The caller gets the error from `changed`.
    const outcome = changed.catch(() => before);
    latest = outcome;
    try {
      await changed;
    } finally {
      await settle();
      if (latest === outcome) latest = null;
    }
  };
}

/**
 * The grants of an agent with that of one tool changed. Other tools that changed since
 * they were allowed stay marked, and those that no server offers any more are left out.
 */
export function changedGrants(
  { tools }: AgentProfile,
  servers: readonly ToolServer[],
  { server_id, tool, policy }: GrantChange,
): Grant[] {
  // The tools of the operator's servers are unknown until they have answered.
  const isOffered = (grant: ToolGrant) =>
    servers.some(
      ({ id, operator, status, tools: offered }) =>
        id === grant.server_id &&
        (offered.some(({ name }) => name === grant.tool) ||
          (operator && status !== "ready" && offered.length === 0)),
    );
  const others = tools.filter(
    (grant) => isOffered(grant) && (grant.server_id !== server_id || grant.tool !== tool),
  );
  return policy === null ? others : [...others, { server_id, tool, policy }];
}

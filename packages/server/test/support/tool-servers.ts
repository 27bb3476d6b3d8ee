import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@parley/testkit/until.ts";
import type { ServerCall } from "../../src/agents/tools/server-calls.ts";
import { createToolServers, type ToolServersOptions } from "../../src/agents/tools/servers.ts";
import { sealToolSecrets } from "../../src/domain/tools.ts";
import { createLogger } from "../../src/observe/log.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { createGuardedFetch } from "../../src/security/guarded-fetch.ts";
import { createVault } from "../../src/security/vault.ts";
import { openSqliteStore } from "../../src/store/sqlite/index.ts";

/** Short enough for tests of servers that hang; a slow machine needs no longer for those that answer. */
const TIMEOUTS = { contactMs: 20_000, refreshMs: 20_000, callMs: 20_000, elicitMs: 20_000 };

/** The tool servers of one person, in a store of their own. */
export async function startToolServers(options: Partial<ToolServersOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "parley-tools-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const vault = createVault([Buffer.alloc(32, 1)]);
  const metrics = createMetrics();
  const [ada, agent] = await store.write(async (tx) => {
    const person = await tx.insertAccount({
      username: "ada",
      kind: "human",
      display_name: "Ada",
      at: Date.now(),
    });
    if (!person) throw new Error("the account was not created");
    const agentAccount = await tx.insertAccount({
      username: "ada:claude",
      kind: "agent",
      display_name: "Claude",
      owner_id: person.id,
      provider: "claude",
      at: Date.now(),
    });
    const made = agentAccount && (await tx.agent(agentAccount.id));
    if (!made) throw new Error("the agent was not created");
    return [person, made];
  });
  const servers = createToolServers({
    store,
    vault,
    metrics,
    log: createLogger("silent"),
    fetch: createGuardedFetch({ allowPrivate: true }),
    timeouts: TIMEOUTS,
    ...options,
  });
  const never = new AbortController().signal;

  return {
    ...servers,
    store,
    vault,
    metrics,
    ada,
    agent,
    /** Adds a server and contacts it once. */
    async add(url: string, token?: string) {
      const id = Bun.randomUUIDv7();
      const owned = { id, owner_id: ada.id };
      const secrets = token ? sealToolSecrets(vault, owned, { token }) : null;
      await store.write((tx) =>
        tx.insertToolServer({ ...owned, name: id, url, secrets, created_at: Date.now() }, 20),
      );
      const server = await servers.refresh(ada.id, id);
      if (!server) throw new Error("the server was not added");
      return server;
    },
    /** Calls a tool as it was when its server was last contacted. */
    async callTool(
      { id }: { id: string },
      tool: string,
      input: Record<string, unknown> = {},
      callOptions: Partial<ServerCall> = {},
    ) {
      const server = (await servers.known(ada.id)).find((each) => each.id === id);
      const known = server?.tools.find(({ name }) => name === tool);
      return servers.call({
        owner_id: ada.id,
        server_id: id,
        tool,
        fingerprint: known?.fingerprint ?? "",
        input,
        signal: never,
        permission: async () => "permitted",
        ...callOptions,
      });
    },
    /** Grants the agent tools as they are now. */
    async grant(
      { id, tools }: Awaited<ReturnType<typeof servers.known>>[number],
      policy: "ask" | "direct" | "always",
    ) {
      const grants = tools.map(({ name, fingerprint }) => ({
        server_id: id,
        tool: name,
        policy,
        fingerprint,
      }));
      await store.write((tx) => tx.setToolGrants(agent.account.id, grants));
    },
    offered: () => servers.granted(agent, never),
    /** The servers of the operator, once they have answered or failed. */
    operators: async () => {
      const offered = async () =>
        (await servers.known(ada.id)).filter((each) => each.operator && each.contacted_at !== null);
      await until(async () => (await offered()).length === options.offered?.length, "contacts");
      return offered();
    },
    async [Symbol.asyncDispose]() {
      await servers.close();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

import { operations, type ToolServer } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { take } from "../calls/throttles.ts";
import { announceSettings } from "../domain/agents.ts";
import { fitting, jsonBytes } from "../domain/pagination.ts";
import { lockActive } from "../domain/sessions.ts";
import { openToolSecrets, sealToolSecrets } from "../domain/tools.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { checkUrlField } from "../security/destination.ts";
import { ownDetails } from "../security/own-password.ts";
import type { ReadTx } from "../store/store.ts";
import type { ToolServerRecord } from "../store/tools.ts";

type Needs = "config" | "vault" | "toolServers" | "audit" | "throttles";
export const tools = createResource<Needs>();

const MAX_SERVERS = 20;

type KnownServer = Awaited<ReturnType<Context<Needs>["toolServers"]["known"]>>[number];

tools.handle(operations.addToolServer, async (context, { name, url, token }) => {
  const { config, audit, caller, vault, toolServers } = context;
  const { id: owner_id } = caller.account;
  // A name that cannot be resolved now may be later.
  await checkUrlField(url, config.allowPrivateAddresses, "address_unknown");
  const id = Bun.randomUUIDv7();
  const secrets = token ? sealToolSecrets(vault, { id, owner_id }, { token }) : null;
  await audit.write(async (tx, record) => {
    await lockActive(tx, caller.account);
    const server = { id, owner_id, name, url, secrets, created_at: Date.now() };
    const outcome = await tx.insertToolServer(server, MAX_SERVERS);
    if (outcome === "full") throw conflict(`there are ${MAX_SERVERS} tool servers already`);
    if (outcome === "taken") throw nameTaken();
    await record("tool_server_added", detailsOf(context, id));
  });
  return shownIfLeft(await toolServers.refresh(owner_id, id));
});

tools.handle(operations.getToolServers, async ({ config, toolServers, caller }) => {
  let left = config.limits.page_bytes;
  const items = (await toolServers.known(caller.account.id)).map((known) => {
    const server = shown(known);
    const tools = left > 0 ? fitting(server.tools, left) : [];
    left -= jsonBytes(tools);
    if (tools.length === server.tools.length) return server;
    return { ...server, tools, has_more_tools: true as const };
  });
  return { items };
});

tools.handle(operations.updateToolServer, async (context, changes) => {
  const { config, audit, caller, toolServers } = context;
  const { server_id: id, name, url, token } = changes;
  const owner = caller.account.id;
  if (url !== undefined) await checkUrlField(url, config.allowPrivateAddresses, "address_unknown");
  const isContacted = url !== undefined || token !== undefined;
  if (isContacted) take(context, "tool_contacts");
  const before = await audit.write(async (tx, record) => {
    const server = await ownServer(tx, context, id);
    if (name !== undefined && !(await tx.renameToolServer(server, name))) {
      throw nameTaken();
    }
    if (isContacted) {
      const secrets = changedSecrets(context, server, changes);
      const isReplaced = await tx.replaceToolSecrets(server, secrets, url);
      if (!isReplaced) throw conflict("the server was changed meanwhile");
    }
    await record("tool_server_changed", detailsOf(context, id));
    return server;
  });
  if (url !== undefined && url !== before.url) toolServers.forget(before);
  if (isContacted) return shown(await toolServers.refresh(owner, id));
  return shown((await toolServers.known(owner)).find((each) => each.id === id) ?? null);
});

tools.handle(operations.refreshToolServer, ({ toolServers, caller }, { server_id }) =>
  toolServers.refresh(caller.account.id, server_id).then(shown),
);

tools.handle(operations.removeToolServer, async (context, { server_id: id }) => {
  const { audit, toolServers } = context;
  const removed = await audit.write(async (tx, record) => {
    const server = await ownServer(tx, context, id);
    for (const agent of await tx.agents(context.caller.account.id)) {
      const grants = await tx.toolGrants(agent.account.id);
      if (grants.some(({ server_id }) => server_id === id)) await announceSettings(tx, agent);
    }
    await tx.deleteToolServer(id);
    await record("tool_server_removed", detailsOf(context, id));
    return server;
  });
  toolServers.forget(removed);
});

tools.handle(operations.authorizeToolServer, async (context, { server_id }) => {
  const { caller, origin, toolServers } = context;
  if (toolServers.operatorTools().has(server_id)) {
    throw forbidden("the operator offers this server");
  }
  const url = await toolServers.authorize(caller.account.id, server_id, origin.base ?? "");
  if (!url) throw notFound("tool server");
  return { url };
});

tools.handle(operations.finishToolServer, async (context, answer) => {
  const { id } = context.caller.account;
  return shownIfLeft(await context.toolServers.finishAuthorization(id, answer));
});

const nameTaken = () => conflict("another tool server has this name", { name: "is taken" });

/** Throws `forbidden` for a server of the operator, and `not_found` for those of others. */
async function ownServer(tx: ReadTx, { caller, toolServers }: Context<Needs>, id: string) {
  if (toolServers.operatorTools().has(id)) throw forbidden("the operator offers this server");
  const server = await tx.toolServer(id);
  if (server?.owner_id !== caller.account.id) throw notFound("tool server");
  return server;
}

/**
 * The sealed secrets of a server with another address or token. Those of the earlier address are not
 * sent to another one: whoever steals a session could read them there.
 */
function changedSecrets(
  { vault }: Context<Needs>,
  server: ToolServerRecord,
  { url = server.url, token }: { url?: string | undefined; token?: string | null | undefined },
) {
  if (token) return sealToolSecrets(vault, server, { token });
  if (url !== server.url) return null;
  if (token === undefined) return server.secrets;
  const { oauth } = openToolSecrets(vault, server);
  return oauth ? sealToolSecrets(vault, server, { oauth }) : null;
}

/** Throws `conflict` if the server was removed while it was asked for its tools. */
function shownIfLeft(server: KnownServer | null): ToolServer {
  if (!server) throw conflict("the tool server was removed meanwhile");
  return shown(server);
}

/** Throws `not_found` if there is no such server. */
function shown(server: KnownServer | null): ToolServer {
  if (!server) throw notFound("tool server");
  const { id, name, url, status, error, operator } = server;
  const tools = server.tools.map(({ fingerprint, ...tool }) => ({
    ...tool,
    input_schema: { ...tool.input_schema },
  }));
  return { id, name, url, status, tools, error, operator };
}

const detailsOf = (context: Context<Needs>, id: string) => ({
  ...ownDetails(context),
  tool_server: id,
});

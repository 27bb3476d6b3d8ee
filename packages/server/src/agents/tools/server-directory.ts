import type { OperatorToolServer } from "../../config/tool-servers.ts";
import type { ServerTools } from "../../domain/tools.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import type { ToolServerRecord, ToolServerState } from "../../store/tools.ts";
import type { Connection, Timeouts } from "./connection.ts";
import type { KnownServer } from "./contacts.ts";
import { ContactFailed } from "./errors.ts";
import { loadClient } from "./load-client.ts";
import type { OwnServerOptions } from "./server-auth.ts";

const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
const NOT_YET = "The server has not answered yet.";
const NOT_STARTED = "The program failed to start, and is started again later.";

export interface ServerDirectoryOptions extends OwnServerOptions {
  /** The servers that the operator offers to everybody. */
  readonly offered?: readonly OperatorToolServer[];
  /** For the addresses that the operator configured: they may be private. */
  readonly operatorFetch?: GuardedFetch;
}

export type ServerDirectory = ReturnType<typeof createServerDirectory>;

/** A person's own servers, and the operator's: these are contacted at once, and kept in memory. */
export function createServerDirectory(
  options: ServerDirectoryOptions,
  contact: (server: KnownServer, signal?: AbortSignal) => Promise<void>,
) {
  const { store, offered = [], operatorFetch = options.fetch } = options;
  const operators = offered.map((setting) => operatorServer(setting, operatorFetch));
  const first = new Map(operators.map(({ id, knownTo }) => [id, contact(knownTo(0))]));

  const operatorsFor = (ownerId: number) => operators.map(({ knownTo }) => knownTo(ownerId));

  /** Null: there is no such server. */
  async function find(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const operator = operatorsFor(ownerId).find(({ id }) => id === serverId);
    if (operator) return operator;
    const record = await store.read((tx) => tx.toolServer(serverId));
    return record?.owner_id === ownerId ? ownServer(record, options) : null;
  }

  /** Waits for the outcome of the first contact with those of these servers that are the operator's. */
  async function contacted(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => first.get(id)));
  }

  return {
    find,
    contacted,
    /** Waits for it, and asks those of them again that did not answer. */
    async contactUnknown(ids: readonly string[], signal: AbortSignal): Promise<void> {
      await contacted(ids);
      const unknown = operators.filter(({ id, tools }) => ids.includes(id) && !tools());
      await Promise.all(unknown.map(({ knownTo }) => contact(knownTo(0), signal)));
    },
    operatorNames: new Set(offered.map(({ name }) => name)),
    operatorTools: (): ServerTools => new Map(operators.map(({ id, tools }) => [id, tools()])),
    /** Their own first, oldest first. */
    async all(ownerId: number): Promise<KnownServer[]> {
      const records = await store.read((tx) => tx.toolServers(ownerId));
      return [...records.map((each) => ownServer(each, options)), ...operatorsFor(ownerId)];
    },
    async findAll(ownerId: number, ids: readonly string[]): Promise<KnownServer[]> {
      // Reads each server on its own: parsing the tools of all at once takes long.
      const found = await Promise.all(ids.map((id) => find(ownerId, id)));
      return found.filter((server) => server !== null);
    },
  };
}

/** Connections to a server are not used any more, on any node, once it has another address. */
export const connectionKey = ({ id, url }: Pick<KnownServer, "id" | "url">) => `${id} ${url}`;

function ownServer(record: ToolServerRecord, options: OwnServerOptions): KnownServer {
  const { secrets: _, ...known } = record;
  const { id, url } = known;
  const { store, fetch } = options;
  return {
    ...known,
    operator: false,
    key: connectionKey(known),
    connect: async (timeouts, signal) => {
      const { connectByHttp, createServerAuth } = await loadClient();
      const auth = createServerAuth(record, options);
      return connectByHttp({ url, fetch, auth }, timeouts, signal);
    },
    save: (state) => store.write((tx) => tx.setToolServerState({ id, url }, state)),
  };
}

function operatorServer(setting: OperatorToolServer, fetch: GuardedFetch) {
  const id = idOf(setting.name);
  const isProgram = "command" in setting;
  let state: ToolServerState = { status: "unreachable", error: NOT_YET, at: 0 };
  let failures = 0;
  let retryAt = 0;

  /** A program that ends at once is not started again at once. */
  async function connect(timeouts: Timeouts, signal: AbortSignal): Promise<Connection> {
    const { connectByHttp, connectByStdio } = await loadClient();
    if (!("command" in setting)) {
      const auth = { token: async () => setting.token };
      return connectByHttp({ url: setting.url, fetch, auth }, timeouts, signal);
    }
    if (Date.now() < retryAt) throw new ContactFailed(NOT_STARTED);
    try {
      const connection = await connectByStdio(setting, timeouts, signal);
      failures = 0;
      return connection;
    } catch (error) {
      retryAt = Date.now() + Math.min(FIRST_RETRY_MS * 2 ** failures++, MAX_RETRY_MS);
      throw error;
    }
  }

  return {
    id,
    /** Null: it has not answered yet. */
    tools: () => state.tools ?? null,
    /** As a person sees it: connections to a server at an address are the person's own. */
    knownTo: (ownerId: number): KnownServer => ({
      id,
      name: setting.name,
      // The rest of the address may contain a key of the operator's.
      url: isProgram ? null : new URL(setting.url).origin,
      status: state.status,
      error: state.error,
      tools: state.tools ?? [],
      contacted_at: state.at || null,
      operator: true,
      // Everybody shares the processes of a program, one call at a time.
      key: isProgram ? id : `${id} ${ownerId}`,
      owner_id: isProgram ? null : ownerId,
      connect,
      save: async (next) => {
        const tools = next.tools ?? state.tools;
        state = { ...next, ...(tools && { tools }) };
      },
    }),
  };
}

/** The same id after a restart and on every node: grants refer to it. */
function idOf(name: string): string {
  const hash = Bun.SHA256.hash(`tool server of the operator: ${name}`, "hex");
  // A UUID of version 8, whose content is free.
  const [, a, b, c, d, e] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hash) ?? [];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

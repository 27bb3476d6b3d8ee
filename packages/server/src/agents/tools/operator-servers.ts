import { createHash } from "node:crypto";
import type { OperatorToolServer } from "../../config/tool-servers.ts";
import type { ServerTools } from "../../domain/tools.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import type { ToolServerState } from "../../store/tools.ts";
import type { Connection, Timeouts } from "./connection.ts";
import type { KnownServer } from "./contacts.ts";
import { ContactFailed } from "./errors.ts";
import { loadClient } from "./load-client.ts";

export type OperatorServers = ReturnType<typeof createOperatorServers>;

const FIRST_RETRY_MS = 1000;
const MAX_RETRY_MS = 60_000;
const NOT_YET = "The server has not answered yet.";
const NOT_STARTED = "The program failed to start, and is started again later.";

/** The servers that the operator offers to everybody. They are contacted at once, and what they offer is kept in memory. */
export function createOperatorServers(
  settings: readonly OperatorToolServer[],
  fetch: GuardedFetch,
  contact: (server: KnownServer, signal?: AbortSignal) => Promise<void>,
) {
  const servers = settings.map((setting) => new OperatorServer(setting, fetch));
  const first = new Map(servers.map((server) => [server.id, contact(server.knownTo(0))]));

  /** Waits for the outcome of the first contact with those of these servers that are the operator's. */
  async function contacted(ids: readonly string[]): Promise<void> {
    await Promise.all(ids.map((id) => first.get(id)));
  }

  return {
    /** As a person sees them: connections to a server at an address are the person's own. */
    known: (ownerId: number) => servers.map((server) => server.knownTo(ownerId)),
    tools: (): ServerTools => new Map(servers.map(({ id, state }) => [id, state.tools ?? null])),
    contacted,
    /** Waits for it, and asks those of them again that did not answer. */
    async contactUnknown(ids: readonly string[], signal: AbortSignal): Promise<void> {
      await contacted(ids);
      const unknown = servers.filter(({ id, state }) => ids.includes(id) && !state.tools);
      await Promise.all(unknown.map((server) => contact(server.knownTo(0), signal)));
    },
  };
}

class OperatorServer {
  readonly id: string;
  state: ToolServerState = { status: "unreachable", error: NOT_YET, at: 0 };
  readonly #setting: OperatorToolServer;
  readonly #fetch: GuardedFetch;
  #failures = 0;
  #retryAt = 0;

  constructor(setting: OperatorToolServer, fetch: GuardedFetch) {
    this.#setting = setting;
    this.#fetch = fetch;
    this.id = idOf(setting.name);
  }

  knownTo(ownerId: number): KnownServer {
    const { id, state } = this;
    const setting = this.#setting;
    const isProgram = "command" in setting;
    return {
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
      connect: (timeouts, signal) => this.#connect(timeouts, signal),
      save: async (next) => {
        const tools = next.tools ?? this.state.tools;
        this.state = { ...next, ...(tools && { tools }) };
      },
    };
  }

  /** A program that ends at once is not started again at once. */
  async #connect(timeouts: Timeouts, signal: AbortSignal): Promise<Connection> {
    const [setting, fetch] = [this.#setting, this.#fetch];
    const { connectByHttp, connectByStdio } = await loadClient();
    if (!("command" in setting)) {
      const auth = { token: async () => setting.token };
      return connectByHttp({ url: setting.url, fetch, auth }, timeouts, signal);
    }
    if (Date.now() < this.#retryAt) throw new ContactFailed(NOT_STARTED);
    try {
      const connection = await connectByStdio(setting, timeouts, signal);
      this.#failures = 0;
      return connection;
    } catch (error) {
      const delay = Math.min(FIRST_RETRY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
      this.#retryAt = Date.now() + delay;
      throw error;
    }
  }
}

/** The same id after a restart and on every node: grants refer to it. */
function idOf(name: string): string {
  const hash = createHash("sha256").update(`tool server of the operator: ${name}`).digest("hex");
  // A UUID of version 8, whose content is free.
  const [, a, b, c, d, e] = /^(.{8})(.{4}).(.{3}).(.{3})(.{12})/.exec(hash) ?? [];
  return `${a}-${b}-8${c}-8${d}-${e}`;
}

import {
  type AuthProvider,
  type Progress,
  ProtocolError,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { z } from "zod";
import { type GuardedFetch, untilAborted } from "../../security/guarded-fetch.ts";
import type { ToolRecord } from "../../store/tools.ts";
import { pausableDeadline } from "./deadline.ts";
import { ContactFailed } from "./errors.ts";
import { type Elicit, McpClient } from "./mcp-client.ts";
import { SentResult, type ToolResult, toolResult } from "./result-text.ts";
import { createToolFetch, type ToolFetch } from "./tool-fetch.ts";
import { toolList } from "./tool-list.ts";

export interface CallOptions {
  readonly signal: AbortSignal;
  /** Answers the questions of the server. Without it they are declined. */
  readonly elicit?: Elicit;
  /** Is told what the server reports about the call. */
  readonly onProgress?: (text: string) => void;
}

export interface Timeouts {
  /** For connecting, and for listing the tools. */
  readonly contactMs: number;
  /** For all contacts before a turn. What was known is offered then. */
  readonly refreshMs: number;
  /** For a call and the wait for a connection, without the time in which a person answers questions. */
  readonly callMs: number;
  /** For the answer to a question. */
  readonly elicitMs: number;
}

const NO_RESULT = "The server ended its answer without a result.";
/** The client parses the end of an answer meanwhile. */
const PARSE_MS = 100;
const MAX_LIST_PAGES = 8;
/** Notifications of cancelled calls are sent before the connection is closed. */
const CANCEL_MS = 2000;
/** A server decides when to reconnect to its stream of notifications: not more often than this. */
const MIN_RECONNECT_MS = 5000;
/** Of a program. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const ToolPage = z.looseObject({
  tools: z.array(z.unknown()),
  nextCursor: z.string().optional(),
});

export function connectByHttp(
  { url, fetch, auth }: { url: string; fetch: GuardedFetch; auth: AuthProvider },
  timeouts: Timeouts,
  signal: AbortSignal,
): Promise<Connection> {
  const broken = Promise.withResolvers<never>();
  const answers = createToolFetch(fetch, broken.reject);
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: answers.fetch,
    authProvider: auth,
    reconnectionScheduler: (reconnect, delay) => {
      const timer = setTimeout(reconnect, Math.max(delay, MIN_RECONNECT_MS));
      return () => clearTimeout(timer);
    },
  });
  const end = () => transport.terminateSession();
  return connect({ transport, timeouts, broken: broken.promise, answers, end }, signal);
}

/** Starts the program. It ends with the connection, and with this process. */
export function connectByStdio(
  { command, args, env }: { command: string; args: string[]; env: Record<string, string> },
  timeouts: Timeouts,
  signal: AbortSignal,
): Promise<Connection> {
  const transport = new StdioClientTransport({
    command,
    args,
    env,
    // Not written to the log: it may contain secrets.
    stderr: "ignore",
    maxBufferSize: MAX_MESSAGE_BYTES,
  });
  return connect({ transport, timeouts }, signal);
}

interface Parts {
  readonly transport: Transport;
  readonly timeouts: Timeouts;
  /** Rejects when an answer breaks off. Not for transports whose end the client notices by itself. */
  readonly broken?: Promise<never>;
  readonly answers?: ToolFetch;
  /** Tells the server that the connection ends. */
  end?(): Promise<void>;
}

export type Connection = Awaited<ReturnType<typeof connect>>;

/**
 * Connects to a tool server. The connection makes one call at a time, so that a question of the server
 * belongs to the call in progress. Rejects with a `ContactError`'s cause, and with the reason of the
 * signal after an abort.
 */
async function connect(
  { transport, timeouts, broken = new Promise(() => {}), answers, end }: Parts,
  signal: AbortSignal,
) {
  const { contactMs, elicitMs } = timeouts;
  let hasFailed = false;
  let isClosed = false;
  let answer: Elicit | null = null;
  const client = new McpClient(contactMs, {
    onListChanged: () => connection.onListChanged(),
    elicit: async (request) => (await answer?.(request)) ?? { action: "decline" },
  });
  client.onclose = () => {
    hasFailed = true;
  };
  broken.catch(() => {
    // The calls that wait for an answer reject with the error.
    hasFailed = true;
  });

  /** Runs work with a signal that is aborted at the end: by the caller, by the timeout, or when it is done. */
  async function within<Result>(
    caller: AbortSignal,
    work: (ended: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const bounded = AbortSignal.any([caller, AbortSignal.timeout(contactMs)]);
    bounded.throwIfAborted();
    const ended = new AbortController();
    const done = work(ended.signal);
    try {
      return await untilAborted(Promise.race([done, broken]), bounded);
    } finally {
      // If the time is up, nobody waits for it any more.
      done.catch(() => {});
      ended.abort("cancelled");
    }
  }

  const connection = {
    async listTools(caller: AbortSignal): Promise<ToolRecord[]> {
      if (!client.getServerCapabilities()?.tools) return [];
      return toolList(await within(caller, (ended) => listPages(client, ended)));
    },
    /**
     * Makes a call. Rejects when it fails or takes longer than `timeoutMs`, and with the reason of the
     * signal after an abort; the server is told, and the connection cannot be used again.
     */
    async callTool(
      tool: string,
      input: Record<string, unknown>,
      { signal, elicit, onProgress, timeoutMs }: CallOptions & { timeoutMs: number },
    ): Promise<ToolResult> {
      const deadline = pausableDeadline(timeoutMs);
      const cancelled = new AbortController();
      const unanswered = Promise.withResolvers<never>();
      let hasEnded = false;
      let questions = 0;
      // A server may end its answer with a question: then the client calls again with what it is told.
      const expectResult = () =>
        setTimeout(() => {
          if (!hasEnded || questions > 0 || answers?.isAnswering()) return;
          unanswered.reject(new ContactFailed(NO_RESULT));
        }, PARSE_MS);
      const ask = async (elicit: Elicit, request: Parameters<Elicit>[0]) => {
        questions++;
        try {
          return await deadline.without(elicit(request), elicitMs);
        } finally {
          questions--;
          expectResult();
        }
      };
      answer = elicit ? (request) => ask(elicit, request) : null;
      if (answers) {
        answers.onEnded = (method) => {
          hasEnded ||= method === "tools/call";
          expectResult();
        };
      }
      const params = { name: tool, arguments: input };
      const call = client.request({ method: "tools/call", params }, SentResult, {
        signal: cancelled.signal,
        timeout: timeoutMs + elicitMs,
        ...(onProgress && { onprogress: reporter(onProgress) }),
      });
      try {
        const ended = Promise.race([call, deadline.ended, unanswered.promise, broken]);
        return toolResult(await untilAborted(ended, signal));
      } catch (error) {
        // An error of the protocol is an answer too.
        hasFailed ||= !(error instanceof ProtocolError);
        cancelled.abort("cancelled");
        throw error;
      } finally {
        answer = null;
        deadline.stop();
        // If the time is up, nobody waits for the call any more.
        call.catch(() => {});
      }
    },
    get hasFailed(): boolean {
      return hasFailed;
    },
    /** False once a call failed or it is closed, and while the server still answers an earlier call. */
    get isUsable(): boolean {
      return !hasFailed && !isClosed && !answers?.isAnswering();
    },
    /** Is called when the server announces that its tools have changed. */
    onListChanged: () => {},
    /** Never rejects. */
    async close(): Promise<void> {
      if (isClosed) return;
      isClosed = true;
      // What cannot be ended in order is dropped: nothing is left to ask of the server.
      const drop = () => {};
      await Promise.race([end?.(), Bun.sleep(CANCEL_MS)]).catch(drop);
      await client.close().catch(drop);
      // A client that is not connected yet does not close its transport.
      await transport.close().catch(drop);
    },
  };

  try {
    await within(signal, () => client.connect(transport, { timeout: contactMs }));
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function listPages(client: McpClient, signal: AbortSignal): Promise<unknown[]> {
  const sent: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_LIST_PAGES; page++) {
    const request = { method: "tools/list", ...(cursor !== undefined && { params: { cursor } }) };
    const { tools, nextCursor } = await client.request(request, ToolPage, { signal });
    sent.push(...tools);
    if (nextCursor === undefined) break;
    cursor = nextCursor;
  }
  return sent;
}

const MAX_PROGRESS_CHARACTERS = 200;
/** A server may report more often than anybody can read. */
const PROGRESS_MS = 500;

function reporter(onProgress: (text: string) => void): (progress: Progress) => void {
  let reportedAt = Number.NEGATIVE_INFINITY;
  return ({ progress, total, message }) => {
    const now = performance.now();
    if (now - reportedAt < PROGRESS_MS) return;
    reportedAt = now;
    const text = message ?? (total === undefined ? `${progress}` : `${progress} / ${total}`);
    const clean = text.slice(0, MAX_PROGRESS_CHARACTERS).toWellFormed().replaceAll("\0", "");
    onProgress(clean);
  };
}

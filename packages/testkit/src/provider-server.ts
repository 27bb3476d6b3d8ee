import { type AddressInfo, createServer, type Socket } from "node:net";
import type { ProtocolName } from "../../server/src/agents/providers/index.ts";
import { framesOf, type ProtocolFrames } from "./provider-frames.ts";

export interface ReceivedRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  protocol: ProtocolName;
  /** Resolves when either side has closed the connection. */
  closed: Promise<void>;
}

/** One request and the low-level functions to answer it. */
export interface Exchange {
  request: ReceivedRequest;
  frames: ProtocolFrames;
  /** Sends the status and the headers. */
  head(status: number, headers?: Record<string, string>): Promise<void>;
  /** Sends one chunk. Resolves when the operating system has taken it. */
  write(chunk: string | Uint8Array): Promise<void>;
  end(): Promise<void>;
  /** Breaks the connection. */
  cut(): void;
  /** Resolves when the client disconnects. */
  stall(): Promise<void>;
}

/** Answers one request. */
export type Responder = (exchange: Exchange) => Promise<void> | void;

/**
 * Starts a provider that speaks both protocols, chosen by the path. Each request is answered by the
 * next responder; the last one answers all further requests.
 */
export async function startProvider(...responders: Responder[]) {
  const requests: ReceivedRequest[] = [];
  const listRequests: ReceivedRequest[] = [];
  let listResponder: Responder = listsModels("model-1", "model-2");
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    closed.then(() => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    readRequests(socket, closed, (request) => {
      if (request.method === "GET") {
        listRequests.push(request);
        return void respond(listResponder, socket, request);
      }
      requests.push(request);
      const responder = responders[Math.min(requests.length, responders.length) - 1];
      if (!responder) throw new Error("startProvider needs a responder");
      void respond(responder, socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    /** The requests for the list of models, which are not in `requests`. */
    listRequests,
    /** Sets how requests for the list of models are answered from now on. */
    respondToLists: (responder: Responder) => {
      listResponder = responder;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers a request for the list of models as the providers do, the newest model first. */
export const listsModels =
  (...ids: string[]): Responder =>
  async ({ head, write, end, frames }) => {
    await head(200, { "content-type": "application/json" });
    await write(frames.models(ids));
    await end();
  };

async function respond(
  responder: Responder,
  socket: Socket,
  request: ReceivedRequest,
): Promise<void> {
  try {
    await responder(exchangeOn(socket, request));
  } catch (error) {
    // Some tests disconnect while a responder writes.
    if (!(error instanceof ConnectionClosed)) throw error;
  }
}

class ConnectionClosed extends Error {}

function exchangeOn(socket: Socket, request: ReceivedRequest): Exchange {
  const send = (bytes: string | Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      if (socket.destroyed) reject(new ConnectionClosed());
      else socket.write(bytes, (error) => (error ? reject(new ConnectionClosed()) : resolve()));
    });
  return {
    request,
    frames: framesOf[request.protocol],
    head: (status, headers = {}) => send(headOf(status, headers)),
    write: (chunk) => send(chunked(chunk)),
    end: () => send("0\r\n\r\n"),
    cut: () => void socket.destroy(),
    stall: () => request.closed,
  };
}

function headOf(status: number, headers: Record<string, string>): string {
  const fields = {
    "content-type": "text/event-stream; charset=utf-8",
    "transfer-encoding": "chunked",
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`;
}

function chunked(chunk: string | Uint8Array): Uint8Array {
  const bytes = Buffer.from(chunk);
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from("\r\n"),
  ]);
}

function readRequests(
  socket: Socket,
  closed: Promise<void>,
  receive: (request: ReceivedRequest) => void,
): void {
  let pending = Buffer.alloc(0);
  socket.on("data", (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    const headLength = pending.indexOf("\r\n\r\n");
    if (headLength < 0) return;
    const [start = "", ...fields] = pending.subarray(0, headLength).toString().split("\r\n");
    const headers = Object.fromEntries(fields.map(readField));
    const end = headLength + 4 + Number(headers["content-length"] ?? 0);
    if (pending.length < end) return;
    const body = JSON.parse(pending.subarray(headLength + 4, end).toString() || "{}");
    pending = pending.subarray(end);
    const [method = "", path = ""] = start.split(" ");
    const protocol = "anthropic-version" in headers ? "anthropic" : "openai";
    receive({ method, path, headers, body, protocol, closed });
  });
}

function readField(line: string): [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** Settings of a server under test whose two agents use this provider, one in each protocol. */
export const providersAt = (url: string, changes: Record<string, unknown> = {}) => ({
  PARLEY_PROVIDERS: JSON.stringify({
    claude: {
      display_name: "Claude",
      protocol: "anthropic",
      base_url: url,
      model: "model-a",
      ...changes,
    },
    gpt: {
      display_name: "GPT",
      protocol: "openai",
      base_url: `${url}/v1`,
      model: "model-o",
      ...changes,
    },
  }),
});

import { until } from "./until.ts";

/** A message of an MCP client. */
export interface McpMessage {
  readonly jsonrpc: "2.0";
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface McpTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: Record<string, unknown>;
  readonly [field: string]: unknown;
}

export interface ReceivedMessage {
  readonly message: McpMessage;
  readonly headers: Headers;
  readonly url: string;
  /** Aborted when the client closes the connection. */
  readonly signal: AbortSignal;
}

/** Answers a message instead of the server. Undefined: the server answers as usual. */
type Answer = (received: ReceivedMessage) => Response | undefined | Promise<Response | undefined>;

export const tool = (name: string, description = `The tool ${name}.`): McpTool => ({
  name,
  description,
  inputSchema: { type: "object", properties: { text: { type: "string" } } },
});

/**
 * An MCP server for tests, which answers in the revision 2025-06-18, and as badly as a test wants. The
 * tools echo their arguments.
 */
export class ToolServer implements AsyncDisposable {
  tools: McpTool[] = [tool("echo")];
  /** The bearer token that it demands. */
  token: string | null = null;
  /** Decides about tokens, instead of `token`. */
  accepts: ((token: string) => boolean | Promise<boolean>) | null = null;
  /** What else it answers, by path. */
  readonly documents = new Map<string, unknown>();
  /** The header of its refusals. */
  challenge = "Bearer";
  answer: Answer = () => undefined;
  /** Answers clients that listen for notifications. */
  listening: () => Response = () => this.listen();
  readonly received: ReceivedMessage[] = [];
  /** Streams of notifications that clients have opened. */
  private readonly listeners = new Set<ReadableStreamDefaultController<string>>();
  private sessions = new Set<string>();
  private readonly http: Bun.Server<undefined>;

  constructor() {
    this.http = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 0,
      fetch: (request) => this.handle(request),
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.http.port}/mcp`;
  }

  /** The messages that it got with this method. */
  got(method: string): ReceivedMessage[] {
    return this.received.filter(({ message }) => message.method === method);
  }

  has(method: string, count = 1): Promise<unknown> {
    return until(() => this.got(method).length >= count, `${count} of ${method}`);
  }

  /** Sends a notification to every client that listens. */
  async notify(method: string): Promise<void> {
    await until(() => this.listeners.size > 0, "a listening client");
    for (const listener of this.listeners) listener.enqueue(event({ jsonrpc: "2.0", method }));
  }

  /** Forgets all sessions, as a server does that was started again. */
  forgetSessions(): void {
    this.sessions = new Set();
  }

  private async handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const document = this.documents.get(pathname);
    if (document !== undefined) return Response.json(document);
    if (pathname !== "/mcp") return new Response(null, { status: 404 });
    if (request.method === "GET") return this.listening();
    if (request.method === "DELETE") return new Response(null, { status: 200 });
    const { headers, signal, url } = request;
    const received = { message: (await request.json()) as McpMessage, headers, url, signal };
    this.received.push(received);
    if (!(await this.isAuthorized(headers))) {
      const refusal = { "www-authenticate": this.challenge };
      return new Response("who are you?", { status: 401, headers: refusal });
    }
    return (await this.answer(received)) ?? this.usual(received);
  }

  private isAuthorized(headers: Headers): boolean | Promise<boolean> {
    const [, token = ""] = /^Bearer (.+)$/.exec(headers.get("authorization") ?? "") ?? [];
    if (this.accepts) return this.accepts(token);
    return this.token === null || token === this.token;
  }

  private usual({ message, headers }: ReceivedMessage): Response {
    const { id, method, params = {} } = message;
    if (id === undefined || method === undefined) return new Response(null, { status: 202 });
    if (method === "initialize") return this.initialize(id);
    if (!this.sessions.has(headers.get("mcp-session-id") ?? "")) {
      return new Response("no session", { status: 404 });
    }
    if (method === "tools/list") return reply(id, { tools: this.tools });
    if (method === "tools/call") return reply(id, textResult(JSON.stringify(params.arguments)));
    return Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "unknown" } });
  }

  private initialize(id: number | string): Response {
    const session = crypto.randomUUID();
    this.sessions.add(session);
    const result = {
      protocolVersion: "2025-06-18",
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "test", version: "1" },
    };
    return reply(id, result, { "mcp-session-id": session });
  }

  private listen(): Response {
    let listener: ReadableStreamDefaultController<string> | undefined;
    const body = new ReadableStream<string>({
      start: (controller) => {
        listener = controller;
        this.listeners.add(controller);
        controller.enqueue(": hello\n\n");
      },
      cancel: () => {
        if (listener) this.listeners.delete(listener);
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.http.stop(true);
  }
}

export const textResult = (text: string) => ({ content: [{ type: "text", text }] });

export const reply = (id: unknown, result: unknown, headers: Record<string, string> = {}) =>
  Response.json({ jsonrpc: "2.0", id, result }, { headers });

/** A message as an event of a stream. */
export const event = (message: unknown) => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

/** A stream of events. */
export const eventStream = (body: BodyInit) =>
  new Response(body, { headers: { "content-type": "text/event-stream" } });

/** Has the server ask something during each call (elicitation), and return what it was told. */
export function asksDuringCalls(
  server: ToolServer,
  params: { message: string; requestedSchema: object },
): void {
  const frame = (message: object) => event({ jsonrpc: "2.0", ...message });
  let told: (result: unknown) => void = () => {};
  server.answer = ({ message }) => {
    if (message.id === "ask" && message.method === undefined) {
      told(message.result);
      return new Response(null, { status: 202 });
    }
    if (message.method !== "tools/call") return undefined;
    const { id } = message;
    const body = new ReadableStream<string>({
      start(stream) {
        stream.enqueue(frame({ id: "ask", method: "elicitation/create", params }));
        told = (result) => {
          stream.enqueue(frame({ id, result: textResult(JSON.stringify(result)) }));
          stream.close();
        };
      },
    });
    return eventStream(body);
  };
}

import { connect, type Socket as NetSocket } from "node:net";
import {
  type Account,
  declaredErrors,
  type ErrorCode,
  type EventFrame,
  type EventName,
  errorStatus,
  events,
  type HttpFailure,
  type InputOf,
  type Message,
  type Operation,
  type OperationName,
  type OutputOf,
  operations,
  type SocketFailure,
} from "@parley/protocol";
import { nextNode, waitForOtherNodes } from "./nodes.ts";

const TIMEOUT_MS = 120_000;

export interface Answer<Result = unknown> {
  status: number;
  headers: Headers;
  body: { ok: true; result?: Result } | HttpFailure;
}

/** The format of ids and timestamps. */
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** One HTTP call. Failures are returned, not thrown. */
export async function post(
  url: string,
  operation: string,
  input?: unknown,
  token?: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${nextNode(url)}/api/${operation}`, {
    method: "POST",
    headers: {
      ...(input !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(input !== undefined && { body: JSON.stringify(input) }),
    // A node that was paused closes its idle connections when it resumes, which races with their reuse.
    keepalive: false,
    // A call that is never answered fails here, before its test times out without saying where.
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const read = await answer(response);
  if (!read.body.ok) checkDeclared(operation, read.body.code);
  return read;
}

/** Reads a response. Throws if its status does not fit its body. */
export async function answer(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const body = (await response.json()) as Answer["body"];
  const expected = body.ok ? 200 : errorStatus[body.code];
  if (status !== expected || (!body.ok && body.error_code !== expected)) {
    throw new Error(`status ${status} does not fit the body ${JSON.stringify(body)}`);
  }
  return { status, headers, body };
}

/** Throws if the contract of the operation does not declare the code. Unknown operations have none. */
function checkDeclared(name: string, code: ErrorCode): void {
  const contract = Object.values<Operation>(operations).find(
    (each) => each.name === name || each.socket === name,
  );
  if (!contract || declaredErrors(contract).includes(code)) return;
  throw new Error(`${contract.name} answered ${code}, which its contract does not declare`);
}

/** The failure of a call, with the same fields for both transports. */
export class CallFailed extends Error {
  readonly code: string;
  readonly status: number | undefined;
  readonly parameters: HttpFailure["parameters"];
  constructor(failure: HttpFailure | SocketFailure) {
    const http = "error_code" in failure;
    super(http ? failure.description : failure.error.message);
    this.code = http ? failure.code : failure.error.code;
    this.status = http ? failure.error_code : undefined;
    this.parameters = http ? failure.parameters : failure.error.parameters;
  }
}

/** The failure of a call. Throws if the call succeeds. */
export async function failure(call: Promise<unknown>): Promise<CallFailed> {
  const outcome = await call.then(
    () => new Error("the call succeeded, although it should fail"),
    (error: unknown) => error,
  );
  if (outcome instanceof CallFailed) return outcome;
  throw outcome;
}

/** The error code of a call, or `ok`. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof CallFailed) return error.code;
    throw error;
  }
}

/** The transports. Tests of operations loop over them. */
export const transports = ["HTTP", "the socket"] as const;
export type Transport = (typeof transports)[number];

/** A person who calls over one transport. */
export type Caller = Pick<Person, "call"> & AsyncDisposable;

/** An account with its access token, which calls over HTTP or opens sockets. */
export class Person implements AsyncDisposable {
  readonly url: string;
  readonly token: string;
  readonly account: Account;

  constructor(url: string, token: string, account: Account) {
    this.url = url;
    this.token = token;
    this.account = account;
  }

  get username(): string {
    return this.account.username;
  }

  async call<Name extends OperationName>(
    name: Name,
    input?: InputOf<Name>,
  ): Promise<OutputOf<Name>> {
    const { body } = await post(this.url, name, input ?? {}, this.token);
    if (!body.ok) throw new CallFailed(body);
    return checkedResult(name, body.result);
  }

  connect(): Promise<Socket> {
    return Socket.open(this.url, this.token);
  }

  /** The same person at another address, as after a restart. */
  at(url: string): Person {
    return new Person(url, this.token, this.account);
  }

  /** The same person on either transport. */
  async via(transport: Transport): Promise<Caller> {
    return transport === "HTTP" ? this : this.connect();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

/** The result, if it has exactly the shape of the contract; throws otherwise. */
export function checkedResult<Name extends OperationName>(
  name: Name,
  result: unknown,
): OutputOf<Name> {
  const { output } = operations[name];
  if (output === null) {
    if (result !== undefined) throw new Error(`${name} answered more than ok`);
    return undefined as OutputOf<Name>;
  }
  return exactly(output, result) as OutputOf<Name>;
}

/** The value, if it fits the schema and has no further fields, which may be a leak. */
function exactly(schema: { parse(value: unknown): unknown }, value: unknown): unknown {
  if (Bun.deepEquals(schema.parse(value), value)) return value;
  throw new Error(`the contract does not have all these fields: ${JSON.stringify(value)}`);
}

let count = 0;

/** Signs up a person under a username that no other has. */
export const signUp = (url: string, name = "user"): Promise<Person> =>
  signUpAs(url, `${name}_${process.pid}_${++count}`);

export async function signUpAs(url: string, username: string): Promise<Person> {
  const { body } = await post(url, "signUp", { username, password: "correct horse battery" });
  if (!body.ok) throw new CallFailed(body);
  const { access_token, account } = checkedResult("signUp", body.result);
  return new Person(url, access_token, account);
}

/** Signs up one person for each name. */
export const people = <const Names extends readonly string[]>(url: string, ...names: Names) =>
  Promise.all(names.map((name) => signUp(url, name))) as Promise<{
    [Index in keyof Names]: Person;
  }>;

/** Creates a group. */
export const groupOf = (creator: Person, ...others: { username: string }[]) =>
  creator.call("startChat", {
    usernames: others.map(({ username }) => username),
    kind: "group",
  });

export const say = (person: Pick<Person, "call">, chat: { id: string }, content: string) =>
  person.call("sendMessage", { chat_id: chat.id, content });

/** Searches messages, again if the search has reached its deadline: on a busy machine it may. */
export async function search(
  person: Pick<Person, "call">,
  input: InputOf<"searchMessages">,
): Promise<OutputOf<"searchMessages">> {
  for (;;) {
    try {
      return await person.call("searchMessages", input);
    } catch (error) {
      if (!(error instanceof CallFailed) || error.code !== "unavailable") throw error;
    }
  }
}

/** Lifts the default limits of a person's agents. */
export async function liftLimits(person: Pick<Person, "call">): Promise<void> {
  for (const provider of ["claude", "gpt"]) {
    await person.call("setAgentLimits", { provider, daily_tokens: null, turns_per_minute: null });
  }
}

/** The username of a person's agent. */
export const agentOf = ({ username }: { username: string }, provider = "claude") =>
  `${username}:${provider}`;

/** Waits for the placeholder of an agent's answer to a message. */
export const replyTo = (socket: Socket, trigger: { id: string }, agent?: string) =>
  socket.event("events.messageNew", isAnswer(trigger, agent)).then(({ params }) => params);

/** Waits for the final message of an agent's answer to a message. */
export const answerTo = (socket: Socket, trigger: { id: string }, agent?: string) =>
  socket.event("events.messageComplete", isAnswer(trigger, agent)).then(({ params }) => params);

/**
 * The content of a streaming message, assembled from a fetched part and the deltas of a socket, as
 * docs/clients.md describes it. What is known already is skipped; nothing may be missing.
 */
export function assembledContent(
  socket: Socket,
  { id, content }: Pick<Message, "id" | "content">,
): string {
  let known = Buffer.from(content);
  for (const { params } of socket.eventsNamed("events.messageDelta")) {
    if (params.id !== id || params.offset <= known.length) continue;
    const delta = Buffer.from(params.delta);
    const start = params.offset - delta.length;
    if (start > known.length) {
      throw new Error(`a delta begins at ${start}, but ${known.length} bytes are known`);
    }
    known = Buffer.concat([known, delta.subarray(known.length - start)]);
  }
  return known.toString();
}

const isAnswer =
  (trigger: { id: string }, agent: string | undefined) =>
  ({ turn, sender }: Message): boolean =>
    turn?.triggered_by === trigger.id && (agent === undefined || sender.username === agent);

/** All pages of a list. */
export async function pagesOf<Item>(
  read: (cursor: { cursor?: string }) => Promise<{ items: Item[]; next_cursor: string | null }>,
): Promise<Item[][]> {
  const pages: Item[][] = [];
  let cursor: string | null = null;
  do {
    const page = await read(cursor === null ? {} : { cursor });
    pages.push(page.items);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return pages;
}

export const socketUrl = (url: string, token: string) =>
  `${url.replace(/^http/, "ws")}/api/ws?token=${encodeURIComponent(token)}`;

type Frame = EventFrame & { at?: { conversation_id: string; seq: number } };
type Reply =
  | { ok: true; result?: unknown; id?: string | number }
  | (SocketFailure & { id?: string | number });

abstract class Listener {
  private waiters = new Set<() => void>();

  /** What has arrived so far, for the message of a timeout. */
  protected abstract seen(): string;

  protected wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  /** Waits for a condition, which is checked whenever a frame arrives. */
  until<Value>(
    find: () => Value | null | undefined | false,
    what: string,
    timeoutMs = TIMEOUT_MS,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = find();
        if (!value) return;
        clearTimeout(timer);
        this.waiters.delete(check);
        resolve(value);
      };
      const timer = setTimeout(() => {
        this.waiters.delete(check);
        reject(new Error(`timed out waiting for ${what}; received: ${this.seen()}`));
      }, timeoutMs);
      this.waiters.add(check);
      check();
    });
  }
}

/** A socket that keeps every frame, checks each event against the contract and lets tests wait for events. */
export class Socket extends Listener implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly events: Frame[] = [];
  readonly replies: Reply[] = [];
  closed: { code: number; reason: string } | null = null;
  private calls = 0;
  private readonly answers = new AnswerCheck();
  /** The server, and the node that the socket is connected to. */
  private readonly location: { url: string; node: string };

  private constructor(socket: WebSocket, location: { url: string; node: string }) {
    super();
    this.socket = socket;
    this.location = location;
    socket.addEventListener("message", ({ data }) => this.keep(JSON.parse(String(data))));
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
      this.wake();
    });
  }

  /** Resolves after `events.hello`. */
  static async open(url: string, token: string): Promise<Socket> {
    const node = nextNode(url);
    const self = new Socket(new WebSocket(socketUrl(node, token)), { url, node });
    await self.until(() => self.events.length > 0 || self.closed, "hello");
    if (self.closed) throw new Error(`the socket closed with ${self.closed.code}`);
    return self;
  }

  private keep(frame: Frame | Reply): void {
    if ("method" in frame) {
      exactly(events[frame.method].params, frame.params);
      this.events.push(frame);
      this.answers.see(frame);
    } else {
      this.replies.push(frame);
    }
    this.wake();
  }

  protected seen(): string {
    return this.events.map(({ method }) => method).join(", ");
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Waits for the first matching event, which may have arrived already. */
  event<Name extends EventName>(
    name: Name,
    fits: (params: EventFrame<Name>["params"]) => boolean = () => true,
  ): Promise<EventFrame<Name>> {
    const find = () =>
      this.events.find(
        (frame) => frame.method === name && fits(frame.params as EventFrame<Name>["params"]),
      ) as EventFrame<Name> | undefined;
    return this.until(find, name);
  }

  eventsNamed<Name extends EventName>(name: Name): EventFrame<Name>[] {
    return this.events.filter(({ method }) => method === name) as EventFrame<Name>[];
  }

  /** All matching events of that name that the server has sent by now. */
  async settledEvents<Name extends EventName>(
    name: Name,
    fits: (params: EventFrame<Name>["params"]) => boolean = () => true,
  ): Promise<EventFrame<Name>[]> {
    await this.settled();
    return this.eventsNamed(name).filter(({ params }) => fits(params));
  }

  /**
   * All events that the server has sent by now, but for changes of accounts: those from before the socket
   * was opened may still arrive from another node.
   */
  async settledButAccounts(): Promise<EventFrame[]> {
    await this.settled();
    return this.events.filter(({ method }) => method !== "events.accountUpdated") as EventFrame[];
  }

  /** A call by any name. Failures are returned, not thrown. */
  async reply(method: string, params?: unknown): Promise<Reply> {
    const id = `c${++this.calls}`;
    this.send({ method, params, id });
    const found = () => this.replies.find((reply) => reply.id === id);
    await this.until(() => found() || this.closed, `the reply to ${method}`);
    const reply = found();
    if (!reply) throw new Error(`the socket closed with ${this.closed?.code} before a reply`);
    if (!reply.ok) checkDeclared(method, reply.error.code);
    return reply;
  }

  /** A call by its dotted name, with `conversation_id` in place of `chat_id`. */
  async call<Name extends OperationName>(
    name: Name,
    input?: InputOf<Name>,
  ): Promise<OutputOf<Name>> {
    const { chat_id, ...rest } = { ...input } as Record<string, unknown>;
    const params = chat_id === undefined ? rest : { ...rest, conversation_id: chat_id };
    const reply = await this.reply(operations[name].socket, params);
    if (!reply.ok) throw new CallFailed(reply);
    return checkedResult(name, reply.result);
  }

  /**
   * Resolves when everything that the server has sent to this socket by now has arrived. Replies
   * and events arrive in order.
   */
  async settled(): Promise<void> {
    await waitForOtherNodes(this.location.url, this.location.node);
    await this.reply("getMe");
  }

  close(): Promise<void> {
    this.socket.close();
    return this.until(() => this.closed !== null, "close").then(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.closed) await this.close();
    this.answers.verify();
  }
}

/** Checks for every turn, in every test, that the deltas add up to the final content. */
class AnswerCheck {
  /** The assembled content of each message; null once it is final. */
  private readonly known = new Map<
    string,
    { conversation: string; text: string; bytes: number } | null
  >();
  private readonly faults: string[] = [];

  see(frame: EventFrame): void {
    if (frame.method === "events.messageNew" && frame.params.finalized_at === null) {
      const { id, conversation_id: conversation, content } = frame.params;
      this.known.set(id, { conversation, text: content, bytes: Buffer.byteLength(content) });
    } else if (frame.method === "events.conversationNew") this.rejoin(frame.params.id);
    else if (frame.method === "events.messageDelta") this.append(frame.params);
    else if (frame.method === "events.messageComplete") this.complete(frame.params);
  }

  /** Somebody who left while an answer streamed has missed some of its deltas. */
  private rejoin(conversation: string): void {
    for (const [id, answer] of this.known) {
      if (answer?.conversation === conversation) this.known.delete(id);
    }
  }

  private append({ id, delta, offset }: EventFrame<"events.messageDelta">["params"]): void {
    const answer = this.known.get(id);
    // The socket opened after the answer began, and receives only the rest.
    if (answer === undefined) return;
    if (answer === null) {
      this.faults.push(`${id} is final, but a delta up to ${offset} follows`);
      return;
    }
    answer.text += delta;
    answer.bytes += Buffer.byteLength(delta);
    if (answer.bytes === offset) return;
    this.faults.push(`${id} has ${answer.bytes} bytes after a delta with offset ${offset}`);
  }

  private complete({ id, content }: Message): void {
    const answer = this.known.get(id);
    this.known.set(id, null);
    if (!answer || answer.text === content) return;
    this.faults.push(
      `the deltas of ${id} add up to «${answer.text}», but its content is «${content}»`,
    );
  }

  verify(): void {
    if (this.faults.length > 0) throw new Error(this.faults.join("; "));
  }
}

const opcodes = { text: 1, binary: 2, close: 8 } as const;

/**
 * A minimal WebSocket client for misbehaviour: it answers no ping, can stop reading, and can send any
 * bytes.
 */
export class RawSocket extends Listener implements AsyncDisposable {
  /** The response to the upgrade request; the body only if the status is not 101. */
  answer: { status: number; body: string } | null = null;
  readonly texts: string[] = [];
  /** Set once closed; code 1006 if the connection ended without a close frame, as in browsers. */
  closed: { code: number } | null = null;
  readonly tcp: NetSocket;
  private unread: Buffer = Buffer.alloc(0);

  private constructor(tcp: NetSocket) {
    super();
    this.tcp = tcp;
    tcp.on("data", (data) => this.received(data as Buffer));
    tcp.on("error", () => this.ended(1006));
    tcp.on("close", () => this.ended(1006));
  }

  /** Resolves after the response to the upgrade request, with any status. */
  static async open(url: string, path: string, headers: Record<string, string> = {}) {
    const { hostname, port, host } = new URL(url);
    const self = new RawSocket(connect(Number(port), hostname));
    const lines = Object.entries({
      host,
      upgrade: "websocket",
      connection: "Upgrade",
      "sec-websocket-version": "13",
      "sec-websocket-key": Buffer.from("0123456789abcdef").toString("base64"),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`);
    self.tcp.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
    await self.until(() => self.answer || self.closed, "an answer");
    return self;
  }

  /** Opens a socket with a token and waits for `events.hello`. */
  static async connect({ url, token }: Pick<Person, "url" | "token">): Promise<RawSocket> {
    const self = await RawSocket.open(url, `/api/ws?token=${token}`);
    await self.until(() => self.texts.length > 0, "hello");
    return self;
  }

  send(payload: string | Uint8Array, opcode: keyof typeof opcodes = "text"): void {
    this.tcp.write(maskedFrame(opcodes[opcode], Buffer.from(payload as string)));
  }

  private received(data: Buffer): void {
    this.unread = Buffer.concat([this.unread, data]);
    if (!this.answer) this.readAnswer();
    if (this.answer?.status === 101) this.readFrames();
    this.wake();
  }

  private readAnswer(): void {
    const text = this.unread.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return;
    const status = Number(text.split(" ")[1]);
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
    if (this.unread.length < end + 4 + length) return;
    const body = this.unread.subarray(end + 4, end + 4 + length).toString("utf8");
    this.answer = { status, body };
    this.unread = this.unread.subarray(end + 4 + length);
  }

  private readFrames(): void {
    for (let frame = splitFrame(this.unread); frame; frame = splitFrame(this.unread)) {
      this.unread = frame.rest;
      if (frame.opcode === opcodes.text) this.texts.push(frame.payload.toString("utf8"));
      if (frame.opcode === opcodes.close) this.ended(frame.payload.readUInt16BE(0));
    }
  }

  private ended(code: number): void {
    this.closed ??= { code };
    this.wake();
  }

  protected seen(): string {
    return `${this.texts.length} frames`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.tcp.destroy();
  }
}

function maskedFrame(opcode: number, payload: Buffer): Buffer {
  const short = payload.length < 126;
  const header = Buffer.alloc(short ? 2 : 10);
  header[0] = 0x80 | opcode;
  header[1] = 0x80 | (short ? payload.length : 127);
  if (!short) header.writeBigUInt64BE(BigInt(payload.length), 2);
  // A mask of zeros does not change the payload.
  return Buffer.concat([header, Buffer.alloc(4), payload]);
}

function splitFrame(data: Buffer) {
  if (data.length < 2) return null;
  const short = (data[1] as number) & 0x7f;
  const start = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (data.length < start) return null;
  const length =
    short < 126 ? short : short === 126 ? data.readUInt16BE(2) : Number(data.readBigUInt64BE(2));
  if (data.length < start + length) return null;
  return {
    opcode: (data[0] as number) & 0x0f,
    payload: data.subarray(start, start + length),
    rest: data.subarray(start + length),
  };
}

import { connect, type Socket as NetSocket } from "node:net";
import {
  type Account,
  type EventFrame,
  type EventName,
  errorStatus,
  events,
  type HttpFailure,
  type InputOf,
  type Message,
  type OperationName,
  type OutputOf,
  operations,
  type SocketFailure,
} from "@parley/protocol";
import { heardFromOthers, nextNode } from "./nodes.ts";

const PATIENCE_MS = 60_000;

export interface Answer<Result = unknown> {
  status: number;
  headers: Headers;
  body: { ok: true; result?: Result } | HttpFailure;
}

/** How ids and times are written on the wire. */
export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** One HTTP call, whatever comes of it. */
export async function post(
  url: string,
  operation: string,
  input?: unknown,
  token?: string,
): Promise<Answer> {
  const response = await fetch(`${nextNode(url)}/api/${operation}`, {
    method: "POST",
    headers: {
      ...(input !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(input !== undefined && { body: JSON.stringify(input) }),
    // A node that stood still closes idle connections when it goes on: maybe just as one is used.
    keepalive: false,
  });
  return answer(response);
}

/** Reads a response; whatever went wrong must be told in the one shape of failures. */
export async function answer(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const body = (await response.json()) as Answer["body"];
  const expected = body.ok ? 200 : errorStatus[body.code];
  if (status !== expected || (!body.ok && body.error_code !== expected)) {
    throw new Error(`status ${status} does not fit the body ${JSON.stringify(body)}`);
  }
  return { status, headers, body };
}

/** A call that failed, with the same fields for both transports. */
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

/** What a call that is meant to fail failed with. */
export async function failure(call: Promise<unknown>): Promise<CallFailed> {
  const outcome = await call.then(
    () => new Error("the call was meant to fail, and succeeded"),
    (error: unknown) => error,
  );
  if (outcome instanceof CallFailed) return outcome;
  throw outcome;
}

/** The code a call fails with, or `ok`. */
export async function outcome(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "ok";
  } catch (error) {
    if (error instanceof CallFailed) return error.code;
    throw error;
  }
}

/** The ways to call; tests of operations loop over them. */
export const transports = ["HTTP", "the socket"] as const;
export type Transport = (typeof transports)[number];

/** Somebody as one transport lets them call. */
export type Caller = Pick<Person, "call"> & AsyncDisposable;

/** Somebody who has signed up, and calls over HTTP or over a socket alike. */
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

/** Whatever a server answers must have the shape that the contract promises. */
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

/** The value, if it has the shape and nothing besides: what is not promised may be a leak. */
function exactly(schema: { parse(value: unknown): unknown }, value: unknown): unknown {
  if (Bun.deepEquals(schema.parse(value), value)) return value;
  throw new Error(`there is more in it than the contract says: ${JSON.stringify(value)}`);
}

let count = 0;

export async function signUp(url: string, name = "user"): Promise<Person> {
  const username = `${name}_${process.pid}_${++count}`;
  const { body } = await post(url, "signUp", { username, password: "correct horse battery" });
  if (!body.ok) throw new CallFailed(body);
  const { access_token, account } = checkedResult("signUp", body.result);
  return new Person(url, access_token, account);
}

/** Several people at once, one for each name. */
export const people = <const Names extends readonly string[]>(url: string, ...names: Names) =>
  Promise.all(names.map((name) => signUp(url, name))) as Promise<{
    [Index in keyof Names]: Person;
  }>;

/** A group of its own for a test, made by the first. */
export const groupOf = (creator: Person, ...others: { username: string }[]) =>
  creator.call("startChat", {
    usernames: others.map(({ username }) => username),
    kind: "group",
  });

export const say = (person: Pick<Person, "call">, chat: { id: string }, content: string) =>
  person.call("sendMessage", { chat_id: chat.id, content });

/** For agents that answer more often than new ones may. */
export async function liftLimits(person: Pick<Person, "call">): Promise<void> {
  for (const provider of ["claude", "gpt"]) {
    await person.call("setAgentLimits", { provider, daily_tokens: null, turns_per_minute: null });
  }
}

/** The username of somebody's agent. */
export const agentOf = ({ username }: { username: string }, provider = "claude") =>
  `${username}:${provider}`;

/** The empty message in which an agent begins to answer another. */
export const replyTo = (socket: Socket, trigger: { id: string }, agent?: string) =>
  socket.event("events.messageNew", isAnswer(trigger, agent)).then(({ params }) => params);

/** An agent's answer to a message, once it is finished. */
export const answerTo = (socket: Socket, trigger: { id: string }, agent?: string) =>
  socket.event("events.messageComplete", isAnswer(trigger, agent)).then(({ params }) => params);

/**
 * What a reader who had so much of a streaming message has by now: deltas it had already are
 * passed over, and every other must go on exactly where the last one ended.
 */
export function grown(socket: Socket, { id, content }: Pick<Message, "id" | "content">): string {
  let known = content;
  for (const { params } of socket.eventsNamed("events.messageDelta")) {
    const length = Buffer.byteLength(known);
    if (params.id !== id || params.offset <= length) continue;
    if (params.offset - Buffer.byteLength(params.delta) !== length) {
      throw new Error(`a delta up to ${params.offset} does not go on where ${length} bytes end`);
    }
    known += params.delta;
  }
  return known;
}

const isAnswer =
  (trigger: { id: string }, agent: string | undefined) =>
  ({ turn, sender }: Message): boolean =>
    turn?.triggered_by === trigger.id && (agent === undefined || sender.username === agent);

/** Every page of a list, from its first to its last. */
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

  /** What has come so far, for the message of a wait in vain. */
  protected abstract seen(): string;

  protected wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  /** Waits for something to become true as frames arrive. */
  until<Value>(
    find: () => Value | null | undefined | false,
    what: string,
    patience = PATIENCE_MS,
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
        reject(new Error(`waited in vain for ${what}; there came: ${this.seen()}`));
      }, patience);
      this.waiters.add(check);
      check();
    });
  }
}

/** A socket that keeps every frame, checks each event's shape and lets a test wait for one. */
export class Socket extends Listener implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly events: Frame[] = [];
  readonly replies: Reply[] = [];
  closed: { code: number; reason: string } | null = null;
  private calls = 0;
  private readonly answers = new AnswerCheck();
  /** The server, and which of its nodes this leads to. */
  private readonly place: { url: string; node: string };

  private constructor(socket: WebSocket, place: { url: string; node: string }) {
    super();
    this.socket = socket;
    this.place = place;
    socket.addEventListener("message", ({ data }) => this.keep(JSON.parse(String(data))));
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
      this.wake();
    });
  }

  /** Resolves when the server has said hello. */
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

  /** The first event of that name that fits, seen already or still to come. */
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

  /** All of that name that there will be of what the server has done so far. */
  async heard<Name extends EventName>(name: Name): Promise<EventFrame<Name>[]> {
    await this.settled();
    return this.eventsNamed(name);
  }

  /** A call by any name, whatever comes of it. */
  async reply(method: string, params?: unknown): Promise<Reply> {
    const id = `c${++this.calls}`;
    this.send({ method, params, id });
    const found = () => this.replies.find((reply) => reply.id === id);
    await this.until(() => found() || this.closed, `the reply to ${method}`);
    const reply = found();
    if (!reply) throw new Error(`the socket closed with ${this.closed?.code} before a reply`);
    return reply;
  }

  /** A call by its dotted name, with the conversation spelled as sockets spell it. */
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
   * Resolves when everything the server had for this socket before now has arrived: replies
   * and events come on one line, in order.
   */
  async settled(): Promise<void> {
    await heardFromOthers(this.place.url, this.place.node);
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

/**
 * Checks what the contract promises of every turn, whatever the test is about: the deltas that a
 * client hears, put together as they come, are byte for byte the final content.
 */
class AnswerCheck {
  /** By message: what its deltas make up so far. Null once it is final. */
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
    // Of an answer that was under way before this socket opened only the rest is heard.
    if (answer === undefined) return;
    if (answer === null) {
      this.faults.push(`${id} is final, and a delta up to ${offset} follows`);
      return;
    }
    answer.text += delta;
    answer.bytes += Buffer.byteLength(delta);
    if (answer.bytes === offset) return;
    this.faults.push(`${id} has ${answer.bytes} bytes with a delta that says ${offset}`);
  }

  private complete({ id, content }: Message): void {
    const answer = this.known.get(id);
    this.known.set(id, null);
    if (!answer || answer.text === content) return;
    this.faults.push(`the deltas of ${id} are «${answer.text}», and its content is «${content}»`);
  }

  verify(): void {
    if (this.faults.length > 0) throw new Error(this.faults.join("; "));
  }
}

const opcodes = { text: 1, binary: 2, close: 8 } as const;

/**
 * A WebSocket spoken by hand, for what well-behaved clients do not do: it answers no ping, can stop
 * reading, and can send anything.
 */
export class RawSocket extends Listener implements AsyncDisposable {
  /** Status of the answer to the upgrade; with another than 101, its body. */
  answer: { status: number; body: string } | null = null;
  readonly texts: string[] = [];
  /** 1006 when the connection ended without a word, as in a browser. */
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

  /** Resolves with the answer to the upgrade, whatever it is. */
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

  /** Opens with a token, as clients do. */
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
  // A mask of zeros leaves the payload as it is.
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

import {
  type Account,
  type EventFrame,
  type EventName,
  errorStatus,
  events,
  type HttpFailure,
  type InputOf,
  type OperationName,
  type OutputOf,
  operations,
  type SocketFailure,
} from "@parley/protocol";

const PATIENCE_MS = 10_000;

export interface Answer<Result = unknown> {
  status: number;
  headers: Headers;
  body: { ok: true; result?: Result } | HttpFailure;
}

/** One HTTP call, whatever comes of it. */
export async function post(
  url: string,
  operation: string,
  input?: unknown,
  token?: string,
): Promise<Answer> {
  const response = await fetch(`${url}/api/${operation}`, {
    method: "POST",
    headers: {
      ...(input !== undefined && { "content-type": "application/json" }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(input !== undefined && { body: JSON.stringify(input) }),
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

export const socketUrl = (url: string, token: string) =>
  `${url.replace(/^http/, "ws")}/api/ws?token=${encodeURIComponent(token)}`;

type Frame = EventFrame & { at?: { conversation_id: string; seq: number } };
type Reply =
  | { ok: true; result?: unknown; id?: string | number }
  | (SocketFailure & { id?: string | number });

/** A socket that keeps every frame, checks each event's shape and lets a test wait for one. */
export class Socket implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly events: Frame[] = [];
  readonly replies: Reply[] = [];
  closed: { code: number; reason: string } | null = null;
  private calls = 0;
  private waiters = new Set<() => void>();

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.addEventListener("message", ({ data }) => this.keep(JSON.parse(String(data))));
    socket.addEventListener("close", ({ code, reason }) => {
      this.closed = { code, reason };
      this.wake();
    });
  }

  /** Resolves when the server has said hello. */
  static async open(url: string, token: string): Promise<Socket> {
    const self = new Socket(new WebSocket(socketUrl(url, token)));
    await self.until(() => self.events.length > 0 || self.closed, "hello");
    if (self.closed) throw new Error(`the socket closed with ${self.closed.code}`);
    return self;
  }

  private keep(frame: Frame | Reply): void {
    if ("method" in frame) {
      exactly(events[frame.method].params, frame.params);
      this.events.push(frame);
    } else {
      this.replies.push(frame);
    }
    this.wake();
  }

  private wake(): void {
    for (const waiter of this.waiters) waiter();
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Waits for something to become true as frames arrive. */
  until<Value>(find: () => Value | null | undefined | false, what: string): Promise<Value> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = find();
        if (!value) return false;
        clearTimeout(timer);
        this.waiters.delete(check);
        resolve(value);
        return true;
      };
      const timer = setTimeout(() => {
        this.waiters.delete(check);
        const seen = this.events.map(({ method }) => method).join(", ");
        reject(new Error(`waited in vain for ${what}; events: ${seen}`));
      }, PATIENCE_MS);
      this.waiters.add(check);
      check();
    });
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
    return this.until(
      () => this.replies.find((reply) => reply.id === id),
      `the reply to ${method}`,
    );
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
    await this.reply("getMe");
  }

  close(): Promise<void> {
    this.socket.close();
    return this.until(() => this.closed !== null, "close").then(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.closed) await this.close();
  }
}

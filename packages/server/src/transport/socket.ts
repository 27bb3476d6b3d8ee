import {
  closeCodes,
  type FrameId,
  MAX_FRAME_ID_LENGTH,
  RequestFrame,
  type SocketReply,
} from "@parley/protocol";
import type { ServerWebSocket, WebSocketHandler } from "bun";
import type { Invoke, Outcome } from "../calls/invoke.ts";
import { chargeBytes, owedMs, takeRate } from "../calls/rates.ts";
import { helloFrame } from "../changes/change.ts";
import { readStartPoint, type StartPoint } from "../domain/updates.ts";
import type { Backlog, Reader } from "../realtime/backlog.ts";
import type { Client, Person } from "../realtime/people.ts";
import { publicAccount } from "../rules/accounts.ts";
import { encode } from "../rules/encoding.ts";
import {
  Failure,
  failure,
  forbidden,
  rateLimited,
  unauthorized,
  unavailable,
} from "../rules/failure.ts";
import type { Authenticated } from "../security/authenticate.ts";
import { parseInput } from "../security/bounded-json.ts";
import type { AgentCaller, Origin, SessionCaller } from "../security/caller.ts";
import { sessionEnd } from "../security/tokens.ts";
import { bearer, originAllowed, SUBPROTOCOL, subprotocols, subprotocolToken } from "./headers.ts";
import type { Services } from "./services.ts";

/** Concurrent calls of one socket; further frames wait. */
const CALLS_AT_ONCE = 64;
/** Bytes of replies that the client has not read; beyond it further frames wait. */
const REPLY_BACKLOG_BYTES = 256 * 1024;
const SWEEP_MS = 5000;
/** How often an open socket updates its session: often enough for «last used», and writes stay rare. */
const RENEW_MS = 60 * 60 * 1000;

/**
 * Bun terminates a socket at this multiple of `backlog_bytes`, in the middle of what it sends. Below
 * it there is room for what is sent until `backlog` has closed the socket with a code.
 */
const HARD_LIMIT_FACTOR = 1.5;

type Socket = ServerWebSocket<Connection>;

/** `protocol`: the subprotocol that the response names. */
type Upgrader = (request: Request, data: Connection, protocol?: string) => boolean;

export function createSockets(services: Services, invoke: Invoke, backlog: Backlog) {
  const { config, authenticator, hub } = services;
  const shared: Dependencies = { services, invoke, backlog };
  const connections = new Set<Connection>();
  const sweeper = setInterval(() => sweep(connections, services), SWEEP_MS);

  return {
    /** Resolves to undefined once the request is upgraded to a socket. */
    async upgrade(
      request: Request,
      origin: Origin,
      upgrade: Upgrader,
    ): Promise<Response | undefined> {
      const inAddress = URL.parse(request.url)?.searchParams.get("token");
      const token = inAddress ?? subprotocolToken(request) ?? bearer(request);
      const who = await authenticator.authenticate(token, origin);
      if (!originAllowed(request, config)) throw forbidden("this origin is not allowed");
      const open = hub.limitedSockets(who.account);
      if (open >= config.limits.sockets_per_user) throw rateLimited(5, "too many sockets");
      const connection = new Connection(shared, who, origin);
      const isNamed = subprotocols(request).includes(SUBPROTOCOL);
      if (upgrade(request, connection, isNamed ? SUBPROTOCOL : undefined)) return undefined;
      throw failure("bad_request", "this address is for WebSocket upgrades");
    },
    handlers: {
      maxPayloadLength: config.limits.frame_bytes,
      backpressureLimit: config.limits.backlog_bytes * HARD_LIMIT_FACTOR,
      // Without it, Bun silently drops what does not fit into the buffer of a slow client.
      closeOnBackpressureLimit: true,
      idleTimeout: config.limits.idle_seconds,
      sendPings: true,
      perMessageDeflate: false,
      open: (socket) => {
        connections.add(socket.data);
        socket.data.opened(socket);
      },
      message: (socket, data) => socket.data.received(data),
      drain: (socket) => socket.data.flush(),
      close: (socket) => {
        connections.delete(socket.data);
        socket.data.closed();
      },
    } satisfies WebSocketHandler<Connection>,
    /** The open sockets. */
    connections: connections as Iterable<Connection>,
    /** Closes every socket with `goingAway`, so that clients reconnect. */
    stop() {
      clearInterval(sweeper);
      for (const connection of connections) {
        connection.close(closeCodes.goingAway, "the server is restarting, please reconnect");
      }
    },
  };
}

interface Dependencies {
  services: Services;
  invoke: Invoke;
  backlog: Backlog;
}

const SESSION_ENDED = unauthorized("the session has ended");
const ANSWERED = Promise.resolve();
/** Clients keep their token, and make the call again. */
const CLOSING = unavailable("the socket is being closed, please reconnect");

/** One socket: its registration with the hub, its calls and their replies. */
class Connection implements Client, Reader {
  readonly id: string = Bun.randomUUIDv7();
  /** The id of the session, or of the token of an external agent. */
  readonly session_id: string;
  expires_at: number;
  renewed_at = Date.now();
  readonly renewable_since: number | null;
  readonly kind: Authenticated["kind"];
  readonly #shared: Dependencies;
  readonly #origin: Origin;
  #account: Authenticated["account"];
  /** Aborted when the socket is closed. Most calls need no signal, so most sockets have none. */
  #gone: AbortController | null = null;
  #socket: Socket | null = null;
  #person: Person | null = null;
  /** Frames that wait for `hello` or for an end of congestion; null when nothing holds frames back. */
  #waiting: (string | Buffer)[] | null = [];
  #calls = 0;
  #unsentReplies: Reply[] = [];
  #unsentReplyBytes = 0;
  /** How calls fail once the socket is being closed; null before. */
  #ended: Failure | null = null;
  /** Set while frames wait until earlier calls are paid for. */
  #paying: NodeJS.Timeout | null = null;
  /** Resolves after the reply to the last call without an id: such replies keep the order of the calls. */
  #lastWithoutId = ANSWERED;

  constructor(shared: Dependencies, who: Authenticated, origin: Origin) {
    this.#shared = shared;
    this.#account = who.account;
    this.kind = who.kind;
    this.session_id = who.kind === "agent" ? who.token_id : who.session_id;
    this.expires_at = who.expires_at;
    this.renewable_since = who.renewable_since;
    this.#origin = { ...origin, socket_id: this.id };
  }

  opened(socket: Socket): void {
    const { hub, log } = this.#shared.services;
    this.#socket = socket;
    this.#person = hub.enter(this.#account, this);
    // All sockets of an account share its record.
    this.#account = this.#person.account;
    this.#listen(this.#person).catch((error) => {
      log.error({ err: error, session_id: this.session_id }, "socket open failed");
      this.close(1011, "internal error");
    });
  }

  /**
   * Subscribes to the account's conversations, then sends `hello`. The client receives every event
   * after that. Starts over if the account's memberships change meanwhile.
   */
  async #listen(person: Person): Promise<void> {
    const { services } = this.#shared;
    const { hub } = services;
    let membership: number;
    let point: StartPoint;
    do {
      membership = person.membership;
      const token = { kind: this.kind, id: this.session_id };
      point = await readStartPoint(services, person.account, token);
      await hub.follow(person, point.conversations);
    } while (this.#socket && membership !== person.membership);
    if (!this.#socket) return;
    const { isEnded, conversations, history_id } = point;
    // The session may have ended before the hub knew of this socket, and then the hub did not close it.
    if (isEnded) return this.close(closeCodes.signedOut, "signed out");
    hub.listen(person, this, conversations);
    const account = publicAccount(person.account);
    this.#socket.send(helloFrame(account, history_id));
    if (this.kind === "agent") {
      services.changes.signalHere({ kind: "agent_connected", username: account.username });
    }
    this.#startWaiting();
  }

  subscribe(topic: string): void {
    this.#socket?.subscribe(topic);
  }

  unsubscribe(topic: string): void {
    this.#socket?.unsubscribe(topic);
  }

  isSubscribed(topic: string): boolean {
    return this.#socket?.isSubscribed(topic) ?? false;
  }

  send(data: string): void {
    this.#shared.backlog.sent(Buffer.byteLength(data));
    this.#socket?.send(data);
  }

  close(code: number, reason: string): void {
    this.#ended = code === closeCodes.signedOut ? SESSION_ENDED : CLOSING;
    // Lets the reply of the call that ended the session go out first.
    setImmediate(() => {
      this.flush(Number.POSITIVE_INFINITY);
      this.#socket?.close(code, reason);
    });
  }

  buffered(): number {
    return this.#socket?.getBufferedAmount() ?? 0;
  }

  unsent(): number {
    return this.buffered() + this.#unsentReplyBytes;
  }

  closeSlow(): void {
    this.#ended = CLOSING;
    this.#socket?.close(closeCodes.tooSlow, "the client reads too slowly: reconnect and catch up");
  }

  terminate(): void {
    this.#ended = CLOSING;
    this.#socket?.terminate();
  }

  #signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (!this.#socket) this.#gone.abort();
    return this.#gone.signal;
  }

  closed(): void {
    this.#socket = null;
    this.#gone?.abort();
    if (this.#paying) clearTimeout(this.#paying);
    this.#unsentReplies = [];
    this.#unsentReplyBytes = 0;
    this.#waiting = null;
    if (this.#person) this.#shared.services.hub.leave(this.#person, this);
  }

  received(data: string | Buffer): void {
    if (this.#waiting || this.#congested() || this.#owes()) {
      // Backpressure: stop reading from the socket until calls finish and replies are read.
      this.#waiting ??= [];
      this.#waiting.push(data);
      this.#socket?.pause();
    } else {
      this.#start(data);
    }
  }

  #congested(): boolean {
    return (
      this.#calls >= CALLS_AT_ONCE ||
      this.#unsentReplies.length > 0 ||
      this.buffered() > REPLY_BACKLOG_BYTES
    );
  }

  /** Whether earlier calls of the account are not paid for; goes on once they are. */
  #owes(): boolean {
    const ms = owedMs(this.#shared.services.rates, this.#payer());
    if (ms > 0) {
      this.#paying ??= setTimeout(() => {
        this.#paying = null;
        this.#startWaiting();
      }, ms);
    }
    return ms > 0;
  }

  #startWaiting(): void {
    if (!this.#person) return;
    while (this.#waiting && !this.#congested() && !this.#owes()) {
      const frame = this.#waiting.shift();
      if (frame !== undefined) {
        this.#start(frame);
        continue;
      }
      this.#waiting = null;
      this.#socket?.resume();
    }
  }

  #start(data: string | Buffer): void {
    const { rates } = this.#shared.services;
    chargeBytes(rates, this.#payer(), { received: data.length });
    const frame = this.#counted(parseFrame(data));
    this.#calls++;
    const before = frame.id === undefined ? this.#lastWithoutId : null;
    const answered = this.#answer(frame, before);
    if (before) this.#lastWithoutId = answered;
  }

  /** A malformed frame counts as a plain call. */
  #counted(frame: Frame): Frame {
    if (!frame.failure) return frame;
    try {
      takeRate(this.#shared.services.rates, "operations", this.#payer());
      return frame;
    } catch (error) {
      if (error instanceof Failure) return { ...frame, failure: error };
      throw error;
    }
  }

  /** `before`: the reply is sent after it. */
  async #answer(frame: Frame, before: Promise<void> | null): Promise<void> {
    const outcome = await this.#outcomeOf(frame);
    if (before) await before;
    this.#calls--;
    this.#reply(frame, outcome);
  }

  #outcomeOf(frame: Frame): Outcome | Promise<Outcome> {
    const { method: name, params, failure } = frame;
    if (failure) return { ok: false, failure };
    return this.#shared.invoke({
      name,
      reference: () => Bun.randomUUIDv7(),
      origin: this.#origin,
      authenticate: () => this.#caller(),
      signal: () => this.#signal(),
      input: () => withChatId(params ?? {}),
      spell: (field) => (field === "chat_id" ? "conversation_id" : field),
      ignores: (fields) => {
        frame.ignored = [...(frame.ignored ?? []), ...fields];
      },
    });
  }

  #caller(): SessionCaller | AgentCaller {
    if (this.#ended) throw this.#ended;
    return this.#payer();
  }

  #payer(): SessionCaller | AgentCaller {
    const account = this.#person?.account ?? this.#account;
    return this.kind === "agent"
      ? { kind: "agent", account, token_id: this.session_id }
      : { kind: "session", account, session_id: this.session_id };
  }

  /** Queues a reply. Those of one iteration of the event loop are written together, as fast as the client reads. */
  #reply(frame: Frame, outcome: Outcome): void {
    if (!this.#socket) return;
    const text = encodeReply(frame, outcome);
    const bytes = Buffer.byteLength(text);
    chargeBytes(this.#shared.services.rates, this.#payer(), { sent: bytes });
    this.#unsentReplies.push({ text, bytes });
    this.#unsentReplyBytes += bytes;
    this.#shared.backlog.sent(bytes);
    if (this.#unsentReplies.length === 1) queueMicrotask(() => this.flush());
  }

  /** Sends queued replies while at most so many bytes are unsent, then starts calls that wait. */
  flush(most = REPLY_BACKLOG_BYTES): void {
    this.#socket?.cork((socket) => {
      while (this.#unsentReplies.length > 0 && socket.getBufferedAmount() <= most) {
        const { text, bytes } = this.#unsentReplies.shift() as Reply;
        this.#unsentReplyBytes -= bytes;
        socket.send(text);
      }
    });
    if (this.#waiting) this.#startWaiting();
  }
}

export type { Connection };

/** An encoded reply, and its length. */
interface Reply {
  readonly text: string;
  readonly bytes: number;
}

/** A call, or the reason why a frame is none. `"id": null` is the same as no id. */
interface Frame {
  id: FrameId | undefined;
  method: string;
  params: unknown;
  failure: Failure | undefined;
  /** Fields of the params that have no effect. */
  ignored?: readonly string[];
}

function parseFrame(data: string | Buffer): Frame {
  if (typeof data !== "string") return malformed("frames are JSON text");
  let json: unknown;
  try {
    json = parseInput(data);
  } catch {
    return malformed("the frame is not JSON");
  }
  const { success, data: frame } = RequestFrame.safeParse(json);
  if (success) {
    const { id, method, params } = frame;
    return { id: id ?? undefined, method, params, failure: undefined };
  }
  const id = RequestFrame.shape.id.safeParse((json as { id?: unknown } | null)?.id);
  return id.success
    ? malformed('a frame is {"method": string, "params": object}', id.data ?? undefined)
    : malformed(`id must be an integer or a string of at most ${MAX_FRAME_ID_LENGTH} characters`);
}

const malformed = (why: string, id?: FrameId): Frame => ({
  id,
  method: "",
  params: undefined,
  failure: failure("bad_request", why),
});

/** Socket params have `conversation_id` where the contract has `chat_id`. */
function withChatId(params: unknown): unknown {
  if (typeof params === "object" && params !== null && "conversation_id" in params) {
    const { conversation_id: chat_id, ...others } = params;
    return { ...others, chat_id };
  }
  return params;
}

function encodeReply({ id, ignored }: Frame, outcome: Outcome): string {
  if (outcome.ok) {
    const body = outcome.result === undefined ? "" : `,"result":${encode(outcome.result)}`;
    const names = ignored ? `,"ignored":${JSON.stringify(ignored)}` : "";
    return `{"ok":true${body}${names}${id === undefined ? "" : `,"id":${JSON.stringify(id)}`}}`;
  }
  const { code, message, parameters } = outcome.failure;
  const reply: SocketReply = {
    ok: false,
    error: { code, message, ...(parameters && { parameters }) },
    ...(ignored && { ignored }),
    ...(id !== undefined && { id }),
  };
  return JSON.stringify(reply);
}

type Swept = Pick<
  Connection,
  "kind" | "session_id" | "expires_at" | "renewed_at" | "renewable_since" | "close"
>;

/**
 * Updates when the sessions and tokens of open sockets were last used, extends sessions whose end is not
 * fixed, and closes sockets whose session or issuer's token has expired.
 */
export function sweep(
  connections: Iterable<Swept>,
  { authenticator, log, config }: Pick<Services, "authenticator" | "log" | "config">,
): void {
  const now = Date.now();
  const renewed = new Map<string, Swept>();
  for (const connection of connections) {
    const { renewable_since } = connection;
    if (connection.expires_at <= now) {
      connection.close(closeCodes.signedOut, "the session has expired");
    } else if (now - connection.renewed_at >= RENEW_MS) {
      connection.renewed_at = now;
      if (renewable_since !== null) {
        connection.expires_at = sessionEnd(renewable_since, now, config.limits);
      }
      renewed.set(connection.session_id, connection);
    }
  }
  for (const { kind, session_id, expires_at } of renewed.values()) {
    authenticator
      .renew(kind, session_id, expires_at)
      .catch((error) => log.error({ err: error, session_id }, "session renewal failed"));
  }
}

import type { Account, EventFrame } from "@parley/protocol";
import { backoffMs } from "../async/retry.ts";
import { onNetworkChange } from "../storage/page-events.ts";
import type { WebSocketClass } from "../types.ts";
import { ABNORMAL, SIGNED_OUT } from "./close-codes.ts";
import { Socket } from "./socket.ts";

/**
 * A connection attempt older than this is abandoned when the network comes back: it may wait for a
 * network that is gone.
 */
const STALE_ATTEMPT_MS = 2000;
/**
 * The backoff starts anew after a connection that lasted this long. One that ends sooner counts as
 * a failure, because each connection costs the service a whole catch-up.
 */
const STABLE_AFTER_MS = 5000;

export interface ConnectionOptions {
  url: string;
  timeoutMs: number;
  /** The shortest and the longest delay between attempts. */
  backoff: { min: number; max: number };
  WebSocket: WebSocketClass | undefined;
  /** The token for the next attempt. While it is null, no attempt is made. */
  token(): string | null;
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  onLost(): void;
  /** An attempt failed. Browsers do not tell whether the service refused the token. */
  onAttemptFailed(): void;
  /** The token is no longer valid. No further attempt is made before `renew` or `start`. */
  onTokenRejected(): void;
}

/** Keeps one socket open: reconnects with backoff, and at once when the network comes back. */
export class Connection {
  readonly #options: ConnectionOptions;
  #isStarted = false;
  #socket: Socket | null = null;
  #hasHello = false;
  #failures = 0;
  #attemptedAt = 0;
  #openedAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #unsubscribe = () => {};

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Whether a socket is open and `events.hello` has arrived. */
  get isOpen(): boolean {
    return this.#hasHello;
  }

  /** Whether a connection is open or being made. */
  get isStarted(): boolean {
    return this.#isStarted;
  }

  start(): void {
    webSocketClass(this.#options.WebSocket);
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#failures = 0;
    this.#unsubscribe = onNetworkChange(
      () => this.retryNow(),
      () => this.#drop(),
    );
    this.#attempt();
  }

  stop(): void {
    this.#isStarted = false;
    this.#unsubscribe();
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    this.#hasHello = false;
    socket?.close();
  }

  /** Closes the socket, if there is one, and opens another at once. */
  renew(): void {
    this.#drop();
    this.#attempt();
  }

  /** Connects without waiting for the end of the backoff. Checks the socket if one is open. */
  retryNow(): void {
    if (this.isOpen) {
      this.#socket?.check();
      return;
    }
    this.#failures = 0;
    if (this.#socket && Date.now() - this.#attemptedAt >= STALE_ATTEMPT_MS) {
      const stale = this.#socket;
      this.#socket = null;
      stale.close();
    }
    this.#attempt();
  }

  call(name: string, input: object): Promise<unknown> {
    if (!this.#socket) throw new Error("there is no connection");
    return this.#socket.call(name, input);
  }

  #attempt(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const token = this.#options.token();
    if (!this.#isStarted || this.#socket || token === null) return;
    this.#attemptedAt = Date.now();
    const { url, timeoutMs, onEvent } = this.#options;
    const socket: Socket = new Socket({
      url,
      token,
      timeoutMs,
      WebSocket: webSocketClass(this.#options.WebSocket),
      onOpen: (account, historyId) => {
        this.#hasHello = true;
        this.#openedAt = Date.now();
        this.#options.onOpen(account, historyId);
      },
      onEvent,
      onClose: (code) => {
        if (this.#socket === socket) this.#handleClose(code);
      },
    });
    this.#socket = socket;
  }

  #handleClose(code: number): void {
    const wasOpen = this.isOpen;
    this.#socket = null;
    this.#hasHello = false;
    if (!this.#isStarted) return;
    if (code === SIGNED_OUT) {
      this.#options.onTokenRejected();
      return;
    }
    if (wasOpen && Date.now() - this.#openedAt >= STABLE_AFTER_MS) this.#failures = 0;
    this.#failures++;
    const delayMs = backoffMs(this.#failures, this.#options.backoff);
    this.#timer = setTimeout(() => this.#attempt(), delayMs);
    if (wasOpen) this.#options.onLost();
    else this.#options.onAttemptFailed();
  }

  /** Gives an open socket up without waiting for it to close, which takes long without a network. */
  #drop(): void {
    if (!this.isOpen) return;
    const socket = this.#socket;
    this.#handleClose(ABNORMAL);
    socket?.close();
  }
}

function webSocketClass(given: WebSocketClass | undefined): WebSocketClass {
  const found = given ?? globalThis.WebSocket;
  if (!found) {
    throw new Error(
      "There is no WebSocket here (Node before 22 has none): pass one as `WebSocket` to createClient, such as that of the package `ws`, or use the operations without connect().",
    );
  }
  return found;
}

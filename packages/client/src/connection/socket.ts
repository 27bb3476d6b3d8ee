import type { Account, EventFrame, SocketReply } from "@parley/protocol";
import type { WebSocketClass, WebSocketLike } from "../types.ts";
import { ABNORMAL, NORMAL } from "./close-codes.ts";
import { PendingCalls } from "./pending-calls.ts";

/** A connection on which nothing arrived for this long is checked with a call. */
const IDLE_MS = 30_000;
/** The timeout of that call. It needs no work on the server, so its reply is fast. */
const CHECK_TIMEOUT_MS = 5000;
/** The timeout for `events.hello` after a connection attempt. The next attempt may reach a server. */
const HELLO_TIMEOUT_MS = 8000;
/** The server takes the token after it. Addresses end up in logs, and pages cannot set headers. */
const SUBPROTOCOL = "parley";
/** A `readyState`. */
const OPEN = 1;

export interface SocketOptions {
  /** The address of the service, with `http` or `https`. */
  url: string;
  token: string;
  timeoutMs: number;
  WebSocket: WebSocketClass;
  /** `events.hello` has arrived: from here on no event is missed. */
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  /** Called once, also if the socket never opened. */
  onClose(code: number): void;
}

/**
 * One WebSocket from opening to closing. A call without a reply closes it, because the connection
 * may be half open.
 */
export class Socket {
  readonly #options: SocketOptions;
  readonly #webSocket: WebSocketLike;
  readonly #calls = new PendingCalls();
  readonly #helloTimer: ReturnType<typeof setTimeout>;
  readonly #idleTimer: ReturnType<typeof setInterval>;
  #receivedAt = Date.now();
  #isClosed = false;
  /** The error that WebSockets outside of browsers report. */
  #failure: unknown;

  constructor(options: SocketOptions) {
    const { url, token, timeoutMs } = options;
    this.#options = options;
    this.#webSocket = new options.WebSocket(`${url.replace(/^http/, "ws")}/api/ws`, [
      SUBPROTOCOL,
      // WebSockets throw for other characters. No valid token has them, so the server refuses it.
      /^[\w.-]+$/.test(token) ? token : "invalid",
    ]);
    const helloTimeoutMs = Math.min(HELLO_TIMEOUT_MS, timeoutMs);
    this.#helloTimer = setTimeout(() => this.#end(ABNORMAL), helloTimeoutMs);
    this.#idleTimer = setInterval(() => {
      if (Date.now() - this.#receivedAt >= IDLE_MS) this.check();
    }, IDLE_MS / 2);
    this.#webSocket.addEventListener("message", ({ data }) => this.#receive(String(data)));
    this.#webSocket.addEventListener("close", ({ code }) => this.#end(code));
    this.#webSocket.addEventListener("error", (event) => {
      this.#failure = "error" in event ? event.error : undefined;
    });
  }

  call(name: string, input: object, timeoutMs = this.#options.timeoutMs): Promise<unknown> {
    return this.#calls.send(name, input, {
      // While the socket closes, nothing is sent any more: its end rejects the call.
      send: (frame) => {
        if (this.#webSocket.readyState === OPEN) this.#webSocket.send(frame);
      },
      timeoutMs,
      onTimeout: () => this.#end(ABNORMAL),
    });
  }

  /** Makes a call to find out whether the connection is alive. */
  check(): void {
    if (this.#isClosed || this.#webSocket.readyState !== OPEN) return;
    const timeoutMs = Math.min(CHECK_TIMEOUT_MS, this.#options.timeoutMs);
    // A timeout ends the connection. Any other outcome shows that it is alive.
    this.call("getMe", {}, timeoutMs).catch(() => {});
  }

  close(): void {
    this.#end(NORMAL);
  }

  #receive(data: string): void {
    if (this.#isClosed) return;
    this.#receivedAt = Date.now();
    const frame = JSON.parse(data) as EventFrame | SocketReply;
    if (!("method" in frame)) {
      this.#calls.settle(frame);
      return;
    }
    if (frame.method === "events.hello") {
      clearTimeout(this.#helloTimer);
      this.#options.onOpen(frame.params, frame.history_id);
    }
    this.#options.onEvent(frame);
  }

  #end(code: number): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#helloTimer);
    clearInterval(this.#idleTimer);
    const cause = this.#failure ?? new Error(`the socket closed with code ${code}`);
    this.#calls.rejectAll(code, cause);
    // `onClose` does not wait for the close event: on a dead connection it takes minutes.
    this.#webSocket.close();
    this.#options.onClose(code);
  }
}

import type { Account, EventFrame } from "@parley/protocol";
import { backoffMs } from "../async/retry.ts";
import type { WebSocketClass } from "../types.ts";
import { onWake } from "./page-events.ts";
import { openSocket, type Socket } from "./socket.ts";

/** The service's word that the token is no longer valid. */
const SIGNED_OUT = 4401;
const NO_WORD = 1006;
/** An attempt this old is given up when there is new hope: it may wait for a network that is gone. */
const STALE_ATTEMPT_MS = 2000;

export interface ConnectionOptions {
  url: string;
  timeoutMs: number;
  /** Shortest and longest pause between attempts. */
  pauses: { min: number; max: number };
  WebSocket: WebSocketClass | undefined;
  /** Null while there is none: then no attempt is made. */
  token(): string | null;
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  onLost(): void;
  /** An attempt has failed. A refused upgrade looks like any other failure to a browser. */
  onUnreached(): void;
  /** The token is no longer valid. No further attempt is made before `renew` or `start`. */
  onTokenEnded(): void;
}

export interface Connection {
  /** Whether a socket is open. */
  isOpen(): boolean;
  /** Whether there is one or one is being made. */
  isWanted(): boolean;
  start(): void;
  stop(): void;
  /** Ends the socket, if there is one, and makes another at once. */
  renew(): void;
  /** Tries now, without waiting for the end of a pause; checks the socket if one is open. */
  retryNow(): void;
  call(name: string, input: object): Promise<unknown>;
}

/** Keeps one socket open: comes back by itself, later and later, and at once when there is hope. */
export function keepConnected(options: ConnectionOptions): Connection {
  let wanted = false;
  let socket: Socket | null = null;
  let open = false;
  let failures = 0;
  let dialledAt = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let stopWaking = () => {};

  function dial(): void {
    clearTimeout(timer);
    timer = undefined;
    const token = options.token();
    if (!wanted || socket || token === null) return;
    dialledAt = Date.now();
    const made: Socket = openSocket({
      url: options.url,
      token,
      timeoutMs: options.timeoutMs,
      WebSocket: implementation(options.WebSocket),
      onOpen(account, historyId) {
        open = true;
        failures = 0;
        options.onOpen(account, historyId);
      },
      onEvent: options.onEvent,
      onClose(code) {
        if (socket === made) lost(code);
      },
    });
    socket = made;
  }

  function lost(code: number): void {
    const wasOpen = open;
    socket = null;
    open = false;
    if (!wanted) return;
    if (code === SIGNED_OUT) {
      options.onTokenEnded();
      return;
    }
    failures++;
    timer = setTimeout(dial, backoffMs(failures, options.pauses));
    if (wasOpen) options.onLost();
    else options.onUnreached();
  }

  function retryNow(): void {
    if (open) return void socket?.check();
    failures = 0;
    if (socket && Date.now() - dialledAt >= STALE_ATTEMPT_MS) {
      const stale = socket;
      socket = null;
      stale.close();
    }
    dial();
  }

  /** Does not wait for the socket to close: without a network it does not for a long time. */
  function lose(): void {
    if (!open) return;
    const dead = socket;
    lost(NO_WORD);
    dead?.close();
  }

  function renew(): void {
    lose();
    dial();
  }

  return {
    isOpen: () => open,
    isWanted: () => wanted,
    start() {
      implementation(options.WebSocket);
      if (wanted) return;
      wanted = true;
      failures = 0;
      stopWaking = onWake(retryNow, lose);
      dial();
    },
    stop() {
      wanted = false;
      stopWaking();
      clearTimeout(timer);
      const last = socket;
      socket = null;
      open = false;
      last?.close();
    },
    renew,
    retryNow,
    call(name, input) {
      if (!socket) throw new Error("there is no connection");
      return socket.call(name, input);
    },
  };
}

function implementation(given: WebSocketClass | undefined): WebSocketClass {
  const found = given ?? globalThis.WebSocket;
  if (!found) {
    throw new Error(
      "There is no WebSocket here (Node before 22 has none): pass one as `WebSocket` to createClient, such as that of the package `ws`, or use the operations without connect().",
    );
  }
  return found;
}

import type { Account, EventFrame } from "@parley/protocol";
import { openSocket, type Socket } from "./socket.ts";
import { onWake } from "./wake.ts";

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
  WebSocket: typeof WebSocket | undefined;
  token(): string | null;
  /** Whether the service still takes the token, asked when a socket did not even open. */
  tokenRefused(): Promise<boolean>;
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  onLost(): void;
  /** An attempt has failed. */
  onUnreached(): void;
  onSignedOut(): void;
}

export interface Connection {
  /** Whether a socket is open. */
  isOpen(): boolean;
  /** Whether there is one or one is being made. */
  isWanted(): boolean;
  start(): void;
  stop(): void;
  /** Ends the socket and makes another. */
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
        if (socket === made) void lost(code);
      },
    });
    socket = made;
  }

  async function lost(code: number): Promise<void> {
    const wasOpen = open;
    socket = null;
    open = false;
    if (!wanted) return;
    if (code === SIGNED_OUT) return options.onSignedOut();
    failures++;
    timer = setTimeout(dial, pause(failures, options.pauses));
    if (wasOpen) return options.onLost();
    options.onUnreached();
    // A refused upgrade looks like any other failure to a browser.
    if ((await options.tokenRefused()) && wanted && !open) options.onSignedOut();
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
  function renew(): void {
    if (!open) return;
    const dead = socket;
    void lost(NO_WORD);
    dead?.close();
  }

  return {
    isOpen: () => open,
    isWanted: () => wanted,
    start() {
      implementation(options.WebSocket);
      if (wanted) return;
      wanted = true;
      failures = 0;
      stopWaking = onWake(retryNow, renew);
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

/** Doubles from attempt to attempt, and differs from client to client so that they do not come back all at once. */
const pause = (failures: number, { min, max }: { min: number; max: number }): number =>
  min + Math.random() * (Math.min(max, min * 2 ** failures) - min);

function implementation(given: typeof WebSocket | undefined): typeof WebSocket {
  const found = given ?? globalThis.WebSocket;
  if (!found) {
    throw new Error(
      "There is no WebSocket here (Node before 22 has none): pass one as `WebSocket` to createClient, or use the operations without connect().",
    );
  }
  return found;
}

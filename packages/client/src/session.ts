import type { Account, EventFrame, OutputOf } from "@parley/protocol";
import { keepConnected } from "./connection.ts";
import { callError, isUnauthorized } from "./errors.ts";
import { gate } from "./gate.ts";
import { callHttp } from "./http.ts";
import type { Connectivity } from "./model.ts";
import type { ClientOptions, Status } from "./types.ts";

const TIMEOUT_MS = 20_000;
/** The longest is short enough that nobody waits long for a server that is back. */
const PAUSES = { min: 500, max: 4000 };
/** Calls that make a session rather than use one. */
const ENTRANCES = ["signIn", "signUp"];

export interface SessionEvents {
  onStatus(status: Status): void;
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  /** Brings the model up to date; false if the connection was lost again. */
  catchUp(): Promise<boolean>;
  onLost(): void;
  onSignedOut(): void;
}

export interface Session extends Connectivity {
  readonly token: string | null;
  /** Over the socket while it is open, over HTTP otherwise. */
  call(name: string, input: object): Promise<unknown>;
  enter(how: "signIn" | "signUp", input: object): Promise<OutputOf<"signIn">>;
  connect(): Promise<void>;
  /** Tries to connect now, if a connection is wanted and there is none. */
  retryNow(): void;
  /** Forgets the token. */
  forget(): void;
  close(): void;
}

/** The token, the connection made with it, and calls by whichever way is open. */
export function session(options: ClientOptions, events: SessionEvents): Session {
  const url = (options.url ?? pageOrigin()).replace(/\/+$/, "");
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const fetch: typeof globalThis.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  const connected = gate();
  const upToDate = gate();
  let token = options.token ?? null;
  let wasUpToDate = false;
  let isClosed = false;

  const connection = keepConnected({
    url,
    timeoutMs,
    pauses: options.reconnectMs ?? PAUSES,
    WebSocket: options.WebSocket,
    token: () => token,
    tokenRefused: () => http("getMe", {}).then(() => false, isUnauthorized),
    onOpen(account, historyId) {
      events.onOpen(account, historyId);
      connected.open();
      void catchUp();
    },
    onEvent: events.onEvent,
    onLost() {
      connected.close();
      upToDate.close();
      events.onLost();
      if (wasUpToDate) events.onStatus("offline");
    },
    onUnreached: () => events.onStatus("offline"),
    onSignedOut: forget,
  });

  async function catchUp(): Promise<void> {
    if (!(await events.catchUp())) return;
    wasUpToDate = true;
    events.onStatus("online");
    upToDate.open();
  }

  const http = (name: string, input: object) =>
    callHttp({ url, timeoutMs, fetch }, name, input, token);

  async function call(name: string, input: object): Promise<unknown> {
    const isEntrance = ENTRANCES.includes(name);
    const used = token;
    try {
      const isSocket = connection.isOpen() && !isEntrance;
      const result = await (isSocket ? connection.call(name, input) : http(name, input));
      // What one person has asked for is not for whoever has come after them.
      if (used !== token && !isEntrance) throw callError("unauthorized", "signed out");
      return result;
    } catch (error) {
      if (isUnauthorized(error) && !isEntrance && used !== null && used === token) forget();
      throw error;
    }
  }

  function end(reason: Error): void {
    connection.stop();
    connected.refuse(reason);
    upToDate.refuse(reason);
    wasUpToDate = false;
  }

  function forget(): void {
    token = null;
    end(callError("unauthorized", "signed out"));
    events.onSignedOut();
  }

  function connect(): Promise<void> {
    if (token === null) return Promise.reject(callError("unauthorized", "sign in first"));
    isClosed = false;
    try {
      if (!connection.isWanted()) {
        connection.start();
        events.onStatus("connecting");
      }
      return upToDate.passed();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  return {
    get token() {
      return token;
    },
    call,
    async enter(how, input) {
      const entered = (await call(how, input)) as OutputOf<"signIn">;
      if (token !== null) forget();
      token = entered.access_token;
      events.onStatus("offline");
      await connect();
      return entered;
    },
    connect,
    retryNow: connection.retryNow,
    forget,
    close() {
      isClosed = true;
      end(closed());
      if (token !== null) events.onStatus("offline");
    },
    isConnected: connection.isOpen,
    reconnect: connection.renew,
    canCall: () => token !== null && !isClosed && (connection.isOpen() || !connection.isWanted()),
    whenReachable() {
      if (token === null) return Promise.reject(callError("unauthorized", "signed out"));
      if (isClosed) return Promise.reject(closed());
      return connection.isWanted() ? connected.passed() : Promise.resolve();
    },
  };
}

const closed = () => callError("unavailable", "the client was closed");

/** In a browser, the page's own service. */
function pageOrigin(): string {
  const { location } = globalThis as { location?: { origin: string } };
  if (!location) throw new Error("Outside a browser createClient needs the `url` of the service.");
  return location.origin;
}

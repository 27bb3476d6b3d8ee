import type { Account, EventFrame, OutputOf } from "@parley/protocol";
import { gate } from "../async/gate.ts";
import { pause } from "../async/retry.ts";
import { callError, isUnauthorized } from "../errors.ts";
import type { ClientOptions, GetToken, Status } from "../types.ts";
import { keepConnected } from "./connection.ts";
import type { Connectivity } from "./connectivity.ts";
import { callHttp } from "./http.ts";
import { requestToken } from "./request-token.ts";

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
  /** There is another token: what had to wait may be called. */
  onToken(): void;
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
  const pauses = options.reconnectMs ?? PAUSES;
  const { getToken } = options;
  const fetch: typeof globalThis.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
  const connected = gate();
  const upToDate = gate();
  let token = options.token ?? null;
  /** While another token is asked for. */
  let renewal: { done: Promise<void>; stop: AbortController } | null = null;
  /** Changes when the token is forgotten: what one person asked for is not for the next. */
  let visit = 0;
  let wasUpToDate = false;
  let isClosed = false;

  const connection = keepConnected({
    url,
    timeoutMs,
    pauses,
    WebSocket: options.WebSocket,
    token: () => (renewal ? null : token),
    onOpen(account, historyId) {
      events.onOpen(account, historyId);
      connected.open();
      void catchUp();
    },
    onEvent: events.onEvent,
    onLost() {
      halt();
      if (wasUpToDate) events.onStatus("offline");
    },
    onUnreached() {
      events.onStatus("offline");
      void checkToken(token);
    },
    onTokenEnded: () => tokenEnded(token),
  });

  function halt(): void {
    connected.close();
    upToDate.close();
    events.onLost();
  }

  async function catchUp(): Promise<void> {
    if (!(await events.catchUp())) return;
    wasUpToDate = true;
    events.onStatus("online");
    upToDate.open();
  }

  const http = (name: string, input: object) =>
    callHttp({ url, timeoutMs, fetch }, name, input, token);

  async function call(name: string, input: object): Promise<unknown> {
    if (ENTRANCES.includes(name)) return http(name, input);
    const mine = visit;
    const mayRenew = getToken !== undefined && name !== "signOut";
    for (let isRetry = false; ; isRetry = true) {
      if (mayRenew && (token === null || renewal)) await renewed();
      const used = token;
      try {
        const isSocket = connection.isOpen();
        const result = await (isSocket ? connection.call(name, input) : http(name, input));
        if (mine !== visit) throw callError("unauthorized", "signed out");
        return result;
      } catch (error) {
        if (!isUnauthorized(error) || mine !== visit || used === null) throw error;
        tokenEnded(used);
        if (!mayRenew || isRetry) throw error;
      }
    }
  }

  async function checkToken(used: string | null): Promise<void> {
    try {
      await http("getMe", {});
    } catch (error) {
      if (isUnauthorized(error) && connection.isWanted()) tokenEnded(used);
    }
  }

  /** The service no longer takes a token that was used. */
  function tokenEnded(used: string | null): void {
    if (used !== token) return;
    if (getToken) void renew(getToken);
    else forget();
  }

  /** Asks for another token and goes on with it; resolves when it is there. */
  function renew(ask: GetToken): Promise<void> {
    if (renewal) return renewal.done;
    const stop = new AbortController();
    const { signal } = stop;
    const request = { getToken: ask, ended: token, timeoutMs, pauses, signal };
    const done = requestToken(request).then(adopt);
    // Nobody has to wait for it.
    done.catch(() => {});
    renewal = { done, stop };
    halt();
    events.onStatus("authorizing");
    return done;
  }

  function adopt(given: string): void {
    token = given;
    renewal = null;
    events.onStatus(connection.isWanted() && !wasUpToDate ? "connecting" : "offline");
    connection.renew();
    events.onToken();
  }

  /** A call does not wait for a token longer than for an answer. */
  async function renewed(): Promise<void> {
    if (!getToken) return;
    const waiting = new AbortController();
    const isLate = pause(timeoutMs, waiting.signal).then(() => false);
    try {
      const isThere = await Promise.race([renew(getToken).then(() => true), isLate]);
      if (!isThere) throw callError("unauthorized", "there is no access token");
    } finally {
      waiting.abort();
    }
  }

  function end(reason: Error): void {
    renewal?.stop.abort(reason);
    renewal = null;
    connection.stop();
    connected.refuse(reason);
    upToDate.refuse(reason);
    wasUpToDate = false;
  }

  function forget(): void {
    visit++;
    token = null;
    end(callError("unauthorized", "signed out"));
    events.onSignedOut();
  }

  function connect(): Promise<void> {
    if (token === null && !getToken) {
      return Promise.reject(callError("unauthorized", "sign in first"));
    }
    isClosed = false;
    try {
      if (!connection.isWanted()) {
        connection.start();
        events.onStatus("connecting");
        if (token === null && getToken) void renew(getToken);
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
      if (token !== null || renewal) forget();
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
    canCall: () =>
      (token !== null || getToken !== undefined) &&
      !renewal &&
      !isClosed &&
      (connection.isOpen() || !connection.isWanted()),
    whenReachable() {
      if (token === null && !getToken) {
        return Promise.reject(callError("unauthorized", "signed out"));
      }
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

import type { Account, EventFrame, OperationName, OutputOf } from "@parley/protocol";
import { createGate } from "../async/gate.ts";
import { callError, confirmationOf, isUnauthorized } from "../errors.ts";
import type { ClientOptions, SignInCall, Status } from "../types.ts";
import { AccessToken } from "./access-token.ts";
import { Connection } from "./connection.ts";
import type { Connectivity } from "./connectivity.ts";
import { callHttp, TIMEOUT_MS } from "./http.ts";

/** The maximum is short, so that clients are back soon after a restart of the service. */
const BACKOFF_MS = { min: 500, max: 4000 };
/** Calls of a sign-in page, which need no token. */
const SIGN_IN_CALLS = [
  "signIn",
  "signUp",
  "getSignInMethods",
  "startOidcSignIn",
  "finishOidcSignIn",
  "getPasswordReset",
  "resetPassword",
] satisfies OperationName[] as string[];
/** Ends the session of the socket, which may close before the reply. Over HTTP the reply always arrives. */
const DELETE_ACCOUNT: OperationName = "deleteMe";

export interface TransportListener {
  onStatus(status: Status): void;
  onOpen(account: Account, historyId: string | undefined): void;
  onEvent(frame: EventFrame): void;
  /** Brings the model up to date. Resolves with false if the connection was lost meanwhile. */
  catchUp(): Promise<boolean>;
  onLost(): void;
  /** There is a new token, so that waiting calls can be made. */
  onToken(): void;
  onSignedOut(): void;
}

/** The token, the connection made with it, and calls over the socket or HTTP. */
export class Transport implements Connectivity {
  /** The address of the service, without a slash at the end. */
  readonly url: string;
  readonly timeoutMs: number;
  readonly #listener: TransportListener;
  readonly #http: (name: string, input: object) => Promise<unknown>;
  readonly #accessToken: AccessToken;
  readonly #connection: Connection;
  readonly #connected = createGate();
  readonly #upToDate = createGate();
  /** Incremented when the token is forgotten or the account changes: earlier calls then reject. */
  #signInCount = 0;
  /** The account of the latest connection; null before the first one. */
  #account: string | null = null;
  #wasUpToDate = false;
  #closing = new AbortController();

  constructor(options: ClientOptions, listener: TransportListener) {
    const url = (options.url ?? pageOrigin()).replace(/\/+$/, "");
    const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    const backoff = options.reconnectMs ?? BACKOFF_MS;
    const fetch: typeof globalThis.fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.url = url;
    this.timeoutMs = timeoutMs;
    this.#listener = listener;
    this.#http = (name, input) => {
      const { signal: closed } = this.#closing;
      return callHttp({ url, timeoutMs, fetch, closed }, name, input, this.token);
    };
    this.#accessToken = new AccessToken({
      token: options.token ?? null,
      getToken: options.getToken,
      timeoutMs,
      backoff,
      onRenewing: () => this.#handleRenewing(),
      onRenewed: () => this.#handleRenewed(),
    });
    this.#connection = new Connection({
      url,
      timeoutMs,
      backoff,
      WebSocket: options.WebSocket,
      token: () => this.#accessToken.usable,
      onOpen: (account, historyId) => this.#handleOpen(account, historyId),
      onEvent: listener.onEvent,
      onLost: () => this.#handleLost(),
      onAttemptFailed: () => this.#handleAttemptFailed(),
      onTokenRejected: () => this.#handleRejected(this.token),
    });
  }

  get token(): string | null {
    return this.#accessToken.current;
  }

  /** Makes a call: over the socket while it is open, over HTTP otherwise. */
  async call(name: string, input: object): Promise<unknown> {
    if (SIGN_IN_CALLS.includes(name)) return this.#http(name, input);
    const accessToken = this.#accessToken;
    const signInCount = this.#signInCount;
    const account = this.#account;
    const mayRenew = accessToken.canRenew && name !== "signOut";
    for (let isRetry = false; ; isRetry = true) {
      if (mayRenew && accessToken.usable === null) {
        await accessToken.renewInTime();
        if (account !== null) await this.#checkAccount(account);
      }
      const used = this.token;
      try {
        const result = await this.#send(name, input);
        if (signInCount !== this.#signInCount && name !== DELETE_ACCOUNT) throw signedOut();
        return result;
      } catch (error) {
        if (!isRetry && confirmationOf(error) === "sign_in" && (await accessToken.replace())) {
          if (account !== null) await this.#checkAccount(account);
          continue;
        }
        const isRejected = isUnauthorized(error) && signInCount === this.#signInCount;
        if (!isRejected || used === null) throw error;
        this.#handleRejected(used);
        if (!mayRenew || isRetry) throw error;
      }
    }
  }

  /** Signs in or up, and connects. */
  async enter(how: SignInCall, input: object): Promise<OutputOf<"signIn">> {
    const entered = (await this.call(how, input)) as OutputOf<"signIn">;
    if (this.token !== null || this.#accessToken.isRenewing) this.forget();
    this.#accessToken.set(entered.access_token);
    this.#listener.onStatus("offline");
    await this.connect();
    return entered;
  }

  /**
   * Connects. The promise resolves when the model is up to date for the first time, and may be
   * ignored.
   */
  connect(): Promise<void> {
    if (!this.#accessToken.isAvailable) {
      return Promise.reject(callError("unauthorized", "sign in first"));
    }
    if (this.#isClosed) this.#closing = new AbortController();
    try {
      this.#startConnection();
      return this.#upToDate.whenOpen();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Connects without waiting for the end of the backoff. */
  retryNow(): void {
    this.#connection.retryNow();
  }

  /** Forgets the token. */
  forget(): void {
    this.#signInCount++;
    this.#account = null;
    this.#accessToken.set(null);
    this.#disconnect(signedOut());
    this.#listener.onSignedOut();
  }

  close(): void {
    this.#closing.abort();
    this.#disconnect(closed());
    if (this.token !== null) this.#listener.onStatus("offline");
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  isConnected(): boolean {
    return this.#connection.isOpen;
  }

  reconnect(): void {
    this.#connection.renew();
  }

  canCall(): boolean {
    const accessToken = this.#accessToken;
    const connection = this.#connection;
    if (this.#isClosed || !accessToken.isAvailable || accessToken.isRenewing) return false;
    return connection.isOpen || !connection.isStarted;
  }

  async whenReachable(): Promise<void> {
    if (!this.#accessToken.isAvailable) throw signedOut();
    if (this.#isClosed) throw closed();
    if (this.#connection.isStarted) await this.#connected.whenOpen();
  }

  #send(name: string, input: object): Promise<unknown> {
    const usesSocket = this.#connection.isOpen && name !== DELETE_ACCOUNT;
    return usesSocket ? this.#connection.call(name, input) : this.#http(name, input);
  }

  #startConnection(): void {
    if (this.#connection.isStarted) return;
    this.#connection.start();
    this.#listener.onStatus("connecting");
    if (this.token === null) void this.#accessToken.renew();
  }

  /** Rejects if the new token is not that of the account for which a call was made. */
  async #checkAccount(account: string): Promise<void> {
    const { username } = (await this.#http("getMe", {})) as Account;
    if (username !== account) throw signedOut();
  }

  #handleOpen(account: Account, historyId: string | undefined): void {
    if (this.#account !== null && this.#account !== account.username) {
      this.#signInCount++;
      this.#connected.closeWith(signedOut());
    }
    this.#account = account.username;
    this.#listener.onOpen(account, historyId);
    this.#connected.open();
    void this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    if (!(await this.#listener.catchUp())) return;
    this.#wasUpToDate = true;
    this.#listener.onStatus("online");
    this.#upToDate.open();
  }

  #handleLost(): void {
    this.#halt();
    if (this.#wasUpToDate) this.#listener.onStatus("offline");
  }

  #handleAttemptFailed(): void {
    this.#listener.onStatus("offline");
    void this.#checkToken(this.token);
  }

  /** Finds out whether the attempt failed because of the token. */
  async #checkToken(used: string | null): Promise<void> {
    try {
      await this.#http("getMe", {});
    } catch (error) {
      if (isUnauthorized(error) && this.#connection.isStarted) this.#handleRejected(used);
    }
  }

  /** Gets a new token, or signs out: the service no longer accepts the token. */
  #handleRejected(used: string | null): void {
    if (used !== this.token) return;
    if (this.#accessToken.canRenew) void this.#accessToken.renew();
    else this.forget();
  }

  #handleRenewing(): void {
    this.#halt();
    this.#listener.onStatus("authorizing");
  }

  #handleRenewed(): void {
    const isFirst = this.#connection.isStarted && !this.#wasUpToDate;
    this.#listener.onStatus(isFirst ? "connecting" : "offline");
    this.#connection.renew();
    this.#listener.onToken();
  }

  #halt(): void {
    this.#connected.close();
    this.#upToDate.close();
    this.#listener.onLost();
  }

  #disconnect(reason: Error): void {
    this.#accessToken.abortRenewal(reason);
    this.#connection.stop();
    this.#connected.closeWith(reason);
    this.#upToDate.closeWith(reason);
    this.#wasUpToDate = false;
  }
}

const signedOut = () => callError("unauthorized", "signed out");
const closed = () => callError("unavailable", "the client was closed");

/** In a browser the service is at the page's own origin by default. */
function pageOrigin(): string {
  const { location } = globalThis as { location?: { origin: string } };
  if (!location) throw new Error("Outside a browser createClient needs the `url` of the service.");
  return location.origin;
}

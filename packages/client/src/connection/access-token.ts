import { pause } from "../async/retry.ts";
import { callError } from "../errors.ts";
import type { GetToken } from "../types.ts";
import { callOnce, requestToken } from "./request-token.ts";

export interface AccessTokenOptions {
  token: string | null;
  getToken: GetToken | undefined;
  timeoutMs: number;
  backoff: { min: number; max: number };
  /** A new token is being requested. */
  onRenewing(): void;
  /** There is a new token. */
  onRenewed(): void;
}

/** The access token in use, and its renewal with `getToken`. */
export class AccessToken {
  readonly #options: AccessTokenOptions;
  #token: string | null;
  #renewal: { done: Promise<void>; abort: AbortController } | null = null;

  constructor(options: AccessTokenOptions) {
    this.#options = options;
    this.#token = options.token;
  }

  /** The token in use, even if it is being renewed. */
  get current(): string | null {
    return this.#token;
  }

  /** The token for new connections and calls; null while it is being renewed. */
  get usable(): string | null {
    return this.#renewal ? null : this.#token;
  }

  get isRenewing(): boolean {
    return this.#renewal !== null;
  }

  get canRenew(): boolean {
    return this.#options.getToken !== undefined;
  }

  /** Whether there is a token or a way to get one. */
  get isAvailable(): boolean {
    return this.#token !== null || this.canRenew;
  }

  set(token: string | null): void {
    this.#token = token;
  }

  /** Requests a new token unless a request is under way. Resolves when it is there. */
  renew(): Promise<void> {
    const { getToken, timeoutMs, backoff, onRenewing } = this.#options;
    if (this.#renewal) return this.#renewal.done;
    if (!getToken) return Promise.reject(noToken());
    const abort = new AbortController();
    const { signal } = abort;
    const request = { getToken, rejected: this.#token, timeoutMs, backoff, signal };
    const done = requestToken(request).then((token) => this.#finish(token));
    // A caller that ignores the promise must not cause an unhandled rejection.
    done.catch(() => {});
    this.#renewal = { done, abort };
    onRenewing();
    return done;
  }

  /** Renews the token, and rejects if that takes longer than a call may take. */
  async renewInTime(): Promise<void> {
    const done = new AbortController();
    const timeout = pause(this.#options.timeoutMs, done.signal).then(() => false);
    try {
      const isRenewed = await Promise.race([this.renew().then(() => true), timeout]);
      if (!isRenewed) throw noToken();
    } finally {
      done.abort();
    }
  }

  /** Asks once for a token that replaces a valid one. Resolves with false if there is no other. */
  async replace(): Promise<boolean> {
    const { getToken, timeoutMs } = this.#options;
    const token = getToken ? await callOnce(getToken, timeoutMs) : null;
    if (token === null || token === this.#token || this.#renewal) return false;
    this.#finish(token);
    return true;
  }

  /** Ends a request for a new token. */
  abortRenewal(reason: Error): void {
    this.#renewal?.abort.abort(reason);
    this.#renewal = null;
  }

  #finish(token: string): void {
    this.#token = token;
    this.#renewal = null;
    this.#options.onRenewed();
  }
}

const noToken = () => callError("unauthorized", "there is no access token");

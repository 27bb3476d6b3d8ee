/** The service makes links that are valid for at least this long, whatever the clock here says. */
const MIN_LIFETIME_MS = 10 * 60 * 1000;
const MAX_LIFETIME_MS = 60 * 60 * 1000;
/** A link is renewed this long before it expires, so that what loads then has time. */
const RENEW_BEFORE_MS = 2 * 60 * 1000;
/** The shortest delay, for links that could not be renewed in time. */
const MIN_DELAY_MS = 1000;

/** When to renew a link that was just fetched. */
export function renewalTime(expiresAt: string): number {
  const now = Date.now();
  const lifetimeMs = Math.max(Date.parse(expiresAt) - now, MIN_LIFETIME_MS);
  return now + Math.min(lifetimeMs, MAX_LIFETIME_MS) - RENEW_BEFORE_MS;
}

/** Calls a function when the first of several links has to be renewed. */
export class RenewalTimer {
  readonly #renew: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(renew: () => void) {
    this.#renew = renew;
  }

  /** Takes the times of all links; Infinity for what is never renewed. */
  restart(times: readonly number[]): void {
    this.stop();
    const next = Math.min(...times);
    if (!Number.isFinite(next)) return;
    this.#timer = setTimeout(this.#renew, Math.max(MIN_DELAY_MS, next - Date.now()));
    // A Node or Bun process may exit while the timer runs.
    if (typeof this.#timer === "object") (this.#timer as { unref?(): void }).unref?.();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

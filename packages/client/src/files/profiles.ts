import type { Profile } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { callWithRetry, pause } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isOutOfReach } from "../errors.ts";
import type { Operations, ProfileCache } from "../types.ts";

/** The most usernames that one call takes. */
const MAX_NAMES_PER_CALL = 100;
/** The service makes addresses that are valid for at least this long, whatever the clock here says. */
const MIN_LIFETIME_MS = 10 * 60 * 1000;
const MAX_LIFETIME_MS = 60 * 60 * 1000;
/** An address is renewed this long before it expires. */
const RENEW_BEFORE_MS = 2 * 60 * 1000;

interface Known {
  /** Undefined: there is no such account. */
  profile: Profile | undefined;
  /** The version of the account that the profile is at least as new as. */
  version: number;
  /** Infinity for an account without a picture. */
  renewAt: number;
}

export interface ProfilesOptions {
  api: Pick<Operations, "getProfiles">;
  reachability: Reachability;
  /** The absolute address of a link. */
  resolve(link: string): string;
  /** The newest version of the account that the model knows. */
  versionOf(username: string): number;
}

/** Keeps the profiles of the accounts that are shown, and fetches them in batches. */
export class Profiles implements ProfileCache {
  readonly #options: ProfilesOptions;
  readonly #known = new Map<string, Known>();
  readonly #watchers = new Map<string, Set<() => void>>();
  /** Usernames that the next call asks for. */
  readonly #wanted = new Set<string>();
  /** Usernames that a call is asking for. */
  readonly #asked = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: ProfilesOptions) {
    this.#options = options;
  }

  peek(username: string): Profile | undefined {
    return this.#known.get(username)?.profile;
  }

  watch(username: string, listener: () => void): () => void {
    const listeners = this.#watchers.get(username) ?? new Set();
    // A function of its own, so that the same listener can watch twice and stop once.
    const own = () => listener();
    listeners.add(own);
    this.#watchers.set(username, listeners);
    if (this.#isOutdated(username)) this.#want(username);
    return () => {
      listeners.delete(own);
      if (listeners.size === 0 && this.#watchers.get(username) === listeners) {
        this.#watchers.delete(username);
      }
    };
  }

  /** Fetches the watched profiles that are missing, older than their account, or expire soon. */
  refresh(): void {
    for (const username of this.#watchers.keys()) {
      if (this.#isOutdated(username)) this.#want(username);
    }
    if (this.#wanted.size === 0) this.#restartTimer();
  }

  /** Forgets all profiles: the account has signed out. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#known.clear();
    this.#wanted.clear();
  }

  #isOutdated(username: string): boolean {
    const known = this.#known.get(username);
    if (!known || known.renewAt <= Date.now()) return true;
    return this.#options.versionOf(username) > known.version;
  }

  /** Asks for a profile after the current task, so that others can join the call. */
  #want(username: string): void {
    if (this.#asked.has(username)) return;
    const isFirst = this.#wanted.size === 0;
    this.#wanted.add(username);
    if (isFirst) void pause(0).then(() => this.#askAll());
  }

  #askAll(): void {
    const names = [...this.#wanted];
    this.#wanted.clear();
    for (let start = 0; start < names.length; start += MAX_NAMES_PER_CALL) {
      void this.#ask(names.slice(start, start + MAX_NAMES_PER_CALL));
    }
  }

  async #ask(usernames: string[]): Promise<void> {
    const { api, reachability, versionOf } = this.#options;
    for (const username of usernames) this.#asked.add(username);
    const versions = new Map(usernames.map((username) => [username, versionOf(username)]));
    const done = () => {
      for (const username of usernames) this.#asked.delete(username);
    };
    try {
      const { items } = await callWithRetry(reachability, () => api.getProfiles({ usernames }));
      done();
      for (const item of items) this.#add(item, versions.get(item.account.username) ?? 0);
      this.#addMissing(usernames, versions);
      // A picture may have changed meanwhile.
      this.refresh();
    } catch (error) {
      done();
      // A service of an earlier version knows no profiles. After other failures the next connection
      // asks again.
      if (isOutOfReach(error)) this.#addMissing(usernames, versions);
    }
  }

  #addMissing(usernames: readonly string[], versions: ReadonlyMap<string, number>): void {
    for (const username of usernames) {
      if (this.#known.has(username)) continue;
      const version = versions.get(username) ?? 0;
      this.#known.set(username, {
        profile: undefined,
        version,
        renewAt: Number.POSITIVE_INFINITY,
      });
    }
  }

  #add(item: Profile, version: number): void {
    const { username } = item.account;
    const known = this.#known.get(username)?.profile;
    const fetched = this.#resolved(item);
    const profile = known && isSame(known, fetched) ? known : fetched;
    this.#known.set(username, {
      profile,
      version: Math.max(version, item.account.version),
      renewAt: renewalOf(item),
    });
    if (profile === known) return;
    for (const listener of [...(this.#watchers.get(username) ?? [])]) {
      callListener(listener);
    }
  }

  #resolved(item: Profile): Profile {
    const { resolve } = this.#options;
    const absolute = (link: string | null) => (link === null ? null : resolve(link));
    const { picture_url, preview_url } = item;
    return { ...item, picture_url: absolute(picture_url), preview_url: absolute(preview_url) };
  }

  #restartTimer(): void {
    clearTimeout(this.#timer);
    const times = [...this.#watchers.keys()].map((name) => this.#known.get(name)?.renewAt);
    const next = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
    if (!Number.isFinite(next)) return;
    this.#timer = setTimeout(() => this.refresh(), Math.max(1000, next - Date.now()));
    // A Node or Bun process may exit while the timer runs.
    if (typeof this.#timer === "object") (this.#timer as { unref?(): void }).unref?.();
  }
}

const isSame = (one: Profile, other: Profile) =>
  one.preview_url === other.preview_url && one.account.version === other.account.version;

function renewalOf({ expires_at }: Profile): number {
  if (expires_at === null) return Number.POSITIVE_INFINITY;
  const now = Date.now();
  const lifetimeMs = Math.max(Date.parse(expires_at) - now, MIN_LIFETIME_MS);
  return now + Math.min(lifetimeMs, MAX_LIFETIME_MS) - RENEW_BEFORE_MS;
}

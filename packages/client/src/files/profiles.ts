import type { Profile } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isOutOfReach } from "../errors.ts";
import type { Operations, ProfileCache } from "../types.ts";
import { Batches } from "./batches.ts";
import { RenewalTimer, renewalTime } from "./renewal.ts";

interface Known {
  /** Undefined: there is no such account. */
  profile: Profile | undefined;
  /** The version of the account that the profile is at least as new as. */
  version: number;
  /** Infinity if there is no picture. */
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
  readonly #batches = new Batches(
    (usernames) => this.#load(usernames),
    // A picture may have changed meanwhile.
    () => this.refresh(),
  );
  readonly #timer = new RenewalTimer(() => this.refresh());

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
    const watched = [...this.#watchers.keys()];
    const outdated = watched.filter((username) => this.#isOutdated(username));
    for (const username of outdated) this.#want(username);
    if (outdated.length > 0) return;
    this.#timer.restart(watched.flatMap((username) => this.#known.get(username)?.renewAt ?? []));
  }

  /** Forgets all profiles: the account has signed out. */
  clear(): void {
    this.#timer.stop();
    this.#known.clear();
  }

  #isOutdated(username: string): boolean {
    const known = this.#known.get(username);
    if (!known || known.renewAt <= Date.now()) return true;
    return this.#options.versionOf(username) > known.version;
  }

  #want(username: string): void {
    // If it fails, the next connection asks again.
    this.#batches.load(username).catch(() => {});
  }

  async #load(usernames: string[]): Promise<void> {
    const { versionOf } = this.#options;
    const versions = new Map(usernames.map((username) => [username, versionOf(username)]));
    const items = await this.#fetch(usernames);
    const profiles = new Map<string, Profile | undefined>([
      ...usernames.map((username) => [username, undefined] as const),
      ...items.map((item) => [item.account.username, item] as const),
    ]);
    for (const [username, item] of profiles) this.#set(username, item, versions.get(username));
  }

  async #fetch(usernames: string[]): Promise<Profile[]> {
    const { api, reachability } = this.#options;
    try {
      return (await callWithRetry(reachability, () => api.getProfiles({ usernames }))).items;
    } catch (error) {
      // A service of an earlier version knows no profiles.
      if (isOutOfReach(error)) return [];
      throw error;
    }
  }

  /** `version` is that of the account when the profile was requested. */
  #set(username: string, item: Profile | undefined, version = 0): void {
    const known = this.#known.get(username)?.profile;
    const fetched = item && this.#resolved(item);
    const profile = known && fetched && isSame(known, fetched) ? known : fetched;
    this.#known.set(username, {
      profile,
      version: Math.max(version, item?.account.version ?? 0),
      renewAt: item?.expires_at ? renewalTime(item.expires_at) : Number.POSITIVE_INFINITY,
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
}

const isSame = (one: Profile, other: Profile) =>
  one.preview_url === other.preview_url && one.account.version === other.account.version;

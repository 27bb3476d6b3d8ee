/** The time at which a person was online. */
export interface Seen {
  readonly username: string;
  readonly at: number;
}

/** How long times are collected before they are stored in one unit of work. */
const SAVE_MS = 1000;
/** How long to wait after times could not be stored. */
const RETRY_MS = 10_000;
/** Another node may need so long to store what this one knows already. */
const KEPT_MS = 10_000;
/** Times in one unit of work, so that other units are not held up. */
const TIMES_PER_UNIT = 500;

/** When people were last online, where the store may not have it yet. */
export function createLastSeen(
  store: (seen: readonly Seen[]) => Promise<unknown>,
  failed: (error: unknown) => void,
) {
  /** In the order of the times. */
  const times = new Map<string, number>();
  const unsaved = new Set<string>();
  let timer: NodeJS.Timeout | null = null;

  async function save(): Promise<void> {
    const seen = [...unsaved].map((username) => ({ username, at: times.get(username) ?? 0 }));
    unsaved.clear();
    while (seen.length > 0) {
      const some = seen.slice(0, TIMES_PER_UNIT);
      try {
        await store(some);
      } catch (error) {
        for (const { username } of seen) unsaved.add(username);
        throw error;
      }
      seen.splice(0, some.length);
    }
    const before = Date.now() - KEPT_MS;
    for (const [username, at] of times) {
      if (at > before) break;
      if (!unsaved.has(username)) times.delete(username);
    }
  }

  function saveIn(ms: number): void {
    timer ??= setTimeout(async () => {
      let next = SAVE_MS;
      try {
        await save();
      } catch (error) {
        failed(error);
        next = RETRY_MS;
      }
      timer = null;
      if (times.size > 0) saveIn(next);
    }, ms);
    timer.unref();
  }

  return {
    /** Notes that the person is online now, or was until now. `isOurs`: this node is to store it. */
    note(username: string, isOurs: boolean): void {
      times.delete(username);
      times.set(username, Date.now());
      if (isOurs) unsaved.add(username);
      saveIn(SAVE_MS);
    },
    /** The later of this time and what is known here; null if there is neither. */
    laterOf(username: string, stored: number | null): number | null {
      const known = times.get(username) ?? stored;
      return known === null ? null : Math.max(known, stored ?? 0);
    },
    /** Stores what is not stored yet. */
    async stop(): Promise<void> {
      if (timer) clearTimeout(timer);
      await save().catch(failed);
    },
  };
}

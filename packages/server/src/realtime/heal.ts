import { closeCodes } from "@parley/protocol";
import { z } from "zod";
import type { Logger } from "../observe/log.ts";
import type { Bus, CatchUp, ChangedSeat, Channel, EventLog, Repeats } from "./bus.ts";
import { alone, type Cluster } from "./cluster.ts";
import type { Hub, Person } from "./hub.ts";

const EVERY_MS = 5000;
/** Clocks differ, and what was committed just now may have been stamped a while ago. */
const SLACK_MS = 30_000;
/** How often the log is read while other nodes cannot be reached. */
const AWAY_MS = 300;
/**
 * Seats and sessions are compared every second time, unless that would take more than a tenth of the
 * time: their cost grows with the number of people connected.
 */
const COMPARE_SHARE = 10;
/** How far back each of these reads goes: commits may follow their time stamp so much later. */
const AWAY_SLACK_MS = 2000;
/** A node that was gone for longer is new when it comes. */
const REMEMBERED_MS = 10 * 60_000;
/** A timer of so long that comes three times as late means that the process stood still. */
const WATCH_MS = 1000;

export interface Healer {
  /** Looks at once. */
  now(): Promise<void>;
  stop(): void;
}

/** A bus that may lose what it carries. */
interface LossyBus extends CatchUp, Repeats, Pick<Bus, "ready"> {
  readonly channel: Pick<Channel, "onUp">;
}

export interface HealerOptions {
  hub: Hub;
  bus: LossyBus;
  events: EventLog;
  /** Tells of nodes that are gone, and may not have said all they had to. */
  cluster?: Pick<Cluster, "share">;
  log: Logger;
  everyMs?: number;
  watchMs?: number;
  awayMs?: number;
}

/**
 * Finds what the bus has lost: because a node died between its commit and its publishing, because
 * NATS was away, or because this node was too slow. It asks the store which conversations of the
 * people here have moved on, and which of their sessions have ended: every few seconds, when the
 * link is back, and when the process has stood still. Changes that no counter counts are asked for
 * only when some may have been lost. While other nodes cannot be reached it reads several times a
 * second what they have committed. What fails is tried again the next time.
 */
export function healer(options: HealerOptions): Healer {
  const { hub, bus, events, log, everyMs = EVERY_MS, watchMs = WATCH_MS } = options;
  const { awayMs = AWAY_MS } = options;
  const { cluster = alone } = options;
  let lookedAt = Date.now();
  let lookTookMs = 0;
  let looking: Promise<void> | null = null;
  let again = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let watchedAt = performance.now();
  /** Up to when other nodes could be reached, or the log was read instead. */
  let followedAt = Date.now();
  /** When all was well last: until then every change was heard of. */
  let wellAt = Date.now();
  /** Since when some may not have been; null while all is well. */
  let doubtfulSince: number | null = null;
  /** When nodes were given up that may yet come back. */
  const lostAt = new Map<string, number>();

  async function look(): Promise<void> {
    const began = Date.now();
    const people = [...hub.people()];
    if (people.length > 0) {
      await seats(people);
      await sessions();
      if (doubtfulSince !== null) await uncounted(doubtfulSince);
    } else doubtfulSince = null;
    lookedAt = began;
    lookTookMs = Date.now() - began;
  }

  async function uncounted(since: number): Promise<void> {
    doubtfulSince = null;
    const isWhole = await repeatSince(since - SLACK_MS).catch((error) => {
      doubtfulSince = Math.min(since, doubtfulSince ?? since);
      throw error;
    });
    if (isWhole) return;
    for (const client of hub.clients()) {
      client.close(closeCodes.goingAway, "events were missed, please reconnect");
    }
  }

  const repeatSince = (since: number) =>
    bus.repeat(async () => {
      const changes = await events.uncountedSince(since);
      return changes?.flatMap((change) => (change.kind === "event" ? change : [])) ?? null;
    });

  /** The cost of this follows what was changed, not who is connected. */
  async function readLog(): Promise<void> {
    const began = Date.now();
    const since = followedAt - AWAY_SLACK_MS;
    for (const { uuid, seq } of await events.changedConversations(since)) bus.behind(uuid, seq);
    await repeatSince(since);
    followedAt = began;
  }

  function followWhileAway(): void {
    if (looking || stopped) return;
    if (Date.now() - lookedAt > Math.max(2 * awayMs, COMPARE_SHARE * lookTookMs)) {
      void now();
      return;
    }
    looking = readLog()
      .catch((error) => log.error({ err: error }, "reading missed events from the log failed"))
      .finally(() => {
        looking = null;
        if (again && !stopped) void now();
      });
  }

  function doubt(since = wellAt): void {
    doubtfulSince = Math.min(since, doubtfulSince ?? since);
    void now();
  }

  /** What a node could not say while it was gone is looked for once it can be heard again. */
  function lose(node: string, tookLeave: boolean): void {
    if (tookLeave) return;
    for (const [other, at] of lostAt) if (Date.now() - at > REMEMBERED_MS) lostAt.delete(other);
    lostAt.set(node, wellAt);
    doubt();
  }

  function meet(node: string, isNew: boolean): void {
    if (isNew && !lostAt.has(node)) return;
    doubt(Math.min(wellAt, lostAt.get(node) ?? wellAt));
    lostAt.delete(node);
  }

  /** Moves on only while nothing is in doubt. */
  function noteWell(): void {
    if (doubtfulSince === null) wellAt = Date.now();
  }

  async function seats(people: readonly Person[]): Promise<void> {
    const byId = new Map(people.map((person) => [person.account.id, person]));
    const changed = await events.changedSince([...byId.keys()], lookedAt - SLACK_MS);
    for (const seat of changed) {
      const person = byId.get(seat.account_id);
      if (person) compare(person, seat);
    }
  }

  function compare({ account, interest }: Person, seat: ChangedSeat): void {
    const { conversation, seq, left } = seat;
    if (interest.has(conversation)) bus.behind(conversation, seq);
    else if (!left) bus.rejoin(conversation, account.username, seq);
  }

  async function sessions(): Promise<void> {
    const ids = new Set([...hub.clients()].map(({ session_id }) => session_id));
    for (const id of await events.endedSessions([...ids])) hub.endSession(id);
  }

  /** One look at a time; whoever asks meanwhile gets one that begins after they asked. */
  function now(): Promise<void> {
    if (looking) again = true;
    looking ??= (async () => {
      do {
        again = false;
        await look().catch((error) =>
          log.error({ err: error }, "missed events were not looked for"),
        );
      } while (again && !stopped);
      looking = null;
    })();
    return looking;
  }

  function schedule(): void {
    if (stopped) return;
    timer = setTimeout(() => now().then(schedule), everyMs * (0.8 + 0.4 * Math.random()));
    timer.unref();
  }
  schedule();

  const watch = setInterval(() => {
    const late = performance.now() - watchedAt - watchMs;
    watchedAt = performance.now();
    if (late > 3 * watchMs) doubt();
    else bus.ready().then(noteWell, () => {});
  }, watchMs);
  watch.unref();

  const follow = setInterval(() => {
    const isReachable = () => {
      followedAt = Date.now();
    };
    bus.ready().then(isReachable, followWhileAway);
  }, awayMs);
  follow.unref();

  bus.channel.onUp(() => doubt());
  cluster.share({ name: "healing", schema: z.never(), receive: () => {}, meet, forget: lose });

  return {
    now,
    stop() {
      stopped = true;
      clearTimeout(timer);
      clearInterval(watch);
      clearInterval(follow);
    },
  };
}

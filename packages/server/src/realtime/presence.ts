import type { Account, EventFrame, Presence } from "@parley/protocol";
import type { Delivered } from "../changes/bus.ts";
import { type EventChange, frameOf, type PresenceRules, presenceFrame } from "../changes/change.ts";
import type { Cluster } from "../changes/cluster.ts";
import { roundedLastSeen } from "../rules/presence.ts";
import { isoOrNull } from "../rules/time.ts";
import { createActivity } from "./activity.ts";
import type { Hub } from "./hub.ts";
import { createLastSeen, type Seen } from "./last-seen.ts";
import { type Client, conversationTopic } from "./people.ts";
import { sharePeople } from "./shared-people.ts";

/** Somebody of whom a person is told. */
interface Told {
  readonly username: string;
  /** When they were last online. */
  readonly seen_at: number | null;
  /** When the person who is told of them was. */
  readonly own_seen_at: number | null;
}

export interface PresenceOptions {
  hub: Pick<Hub, "person" | "onSockets" | "isConnected" | "connected">;
  cluster: Cluster;
  store: {
    /** Those of these people of whom the person is told. They are told of the person, too. */
    among(username: string, others: readonly string[]): Promise<readonly Told[]>;
    note(seen: readonly Seen[]): Promise<unknown>;
  };
  failed(error: unknown): void;
}

/** What a socket watches of one person. */
interface Entry {
  isTold: boolean;
  /** What the client was told last. `nothing`: as of names that do not exist. */
  shown: "online" | "seen" | "nothing";
  /** The check that decides whether the client is told: until then it is told nothing. Zero: none. */
  check: number;
}

/** What one socket watches. */
interface Watch {
  readonly client: Client;
  readonly username: string;
  readonly entries: ReadonlyMap<string, Entry>;
}

/** One direction of a check between two people: `watch` has an entry of the person `of`. */
interface Checked {
  readonly watch: Watch;
  readonly entry: Entry;
  readonly of: string;
}

/** How long to wait after a check failed. */
const RETRY_MS = 1000;

/**
 * Tells sockets when the people whom they watch come online and go offline. Who is online follows from the
 * sockets that the hub knows on all nodes, so that it is as current as that. Whether a person is told of
 * another one is read from the store when the watch begins, and again whenever it may have changed: what
 * is not watched costs nothing.
 */
export function createPresence({ hub, cluster, store, failed }: PresenceOptions) {
  const watches = new Map<Client, Watch>();
  /** By the person watched. */
  const watchers = new Map<string, Set<Watch>>();
  const lastSeen = createLastSeen(store.note, failed);
  const activity = createActivity(cluster);
  let lastCheck = 0;
  const here = { has: hub.isConnected, all: hub.connected };
  const online = sharePeople(cluster, "online", here, (username, isOurs) => {
    lastSeen.note(username, isOurs);
    tellWatchers(username);
  });
  hub.onSockets({
    connected: ({ account }) => online.changedHere(account.username),
    closed({ account }, client) {
      forget(client);
      activity.set(account.username, client, false);
    },
  });

  function begin(client: Client, username: string, names: readonly string[]): Watch {
    const entries = names.map((name): [string, Entry] => [
      name,
      { isTold: false, shown: "nothing", check: 0 },
    ]);
    const watch = { client, username, entries: new Map(entries) };
    watches.set(client, watch);
    for (const name of names) watchers.set(name, (watchers.get(name) ?? new Set()).add(watch));
    return watch;
  }

  function forget(client: Client): void {
    const watch = watches.get(client);
    if (!watch) return;
    watches.delete(client);
    for (const name of watch.entries.keys()) {
      const others = watchers.get(name);
      others?.delete(watch);
      if (others?.size === 0) watchers.delete(name);
    }
  }

  /** `seenAt`: undefined if nothing is told of the person. */
  function presenceOf(username: string, seenAt: number | null | undefined): Presence {
    const nothing = { username, online: false, last_seen_at: null };
    if (seenAt === undefined) return nothing;
    if (online.has(username)) return { ...nothing, online: true };
    const at = lastSeen.laterOf(username, seenAt);
    return { ...nothing, last_seen_at: isoOrNull(at && roundedLastSeen(at, Date.now())) };
  }

  /** Somebody has come online or gone offline. */
  function tellWatchers(username: string): void {
    const watching = watchers.get(username);
    if (!watching) return;
    const presence = presenceOf(username, null);
    const frame = presenceFrame(presence);
    for (const { client, entries } of watching) {
      const entry = entries.get(username);
      if (!entry?.isTold || entry.check !== 0) continue;
      entry.shown = shownAs(presence);
      client.send(frame);
    }
  }

  const watchesOf = (username: string): Watch[] =>
    [...(hub.person(username)?.clients ?? [])].flatMap((client) => watches.get(client) ?? []);

  /** What is watched on this node of one person by the other, in both directions. */
  function between(username: string, other: string): Checked[] {
    const found = (watcher: string, of: string) =>
      watchesOf(watcher).flatMap((watch) => {
        const entry = watch.entries.get(of);
        return entry ? [{ watch, entry, of }] : [];
      });
    return [...found(username, other), ...found(other, username)];
  }

  /** Reads again whether a person and these others are told of each other. */
  function check(username: string, others: Iterable<string>): void {
    const names = new Set(others);
    const checked = [...names].flatMap((other) => between(username, other));
    if (checked.length === 0) return;
    const number = ++lastCheck;
    for (const { entry } of checked) entry.check = number;
    void decide(number, username, [...names], checked);
  }

  async function decide(
    number: number,
    username: string,
    names: readonly string[],
    checked: readonly Checked[],
  ): Promise<void> {
    const told = await askUntilKnown(username, names);
    for (const { watch, entry, of } of checked) {
      // A later check decides, or the socket watches others now.
      if (entry.check !== number || watches.get(watch.client) !== watch) continue;
      const found = told.get(of === username ? watch.username : of);
      const presence = presenceOf(of, of === username ? found?.own_seen_at : found?.seen_at);
      const before = entry.shown;
      settle(entry, found !== undefined, presence);
      if (entry.shown !== before) watch.client.send(presenceFrame(presence));
    }
  }

  async function askUntilKnown(username: string, names: readonly string[]) {
    for (;;) {
      try {
        return await ask(username, names);
      } catch (error) {
        failed(error);
        await new Promise((resolve) => void setTimeout(resolve, RETRY_MS).unref());
      }
    }
  }

  async function ask(username: string, names: readonly string[]) {
    const found = names.length > 0 ? await store.among(username, names) : [];
    return new Map(found.map((each) => [each.username, each]));
  }

  /** Checks everything that is watched on this node of a person, and by them. */
  function checkPerson(username: string): void {
    const watched = watchesOf(username).flatMap(({ entries }) => [...entries.keys()]);
    const watching = [...(watchers.get(username) ?? [])].map((watch) => watch.username);
    check(username, [...watched, ...watching]);
  }

  /** Checks what everybody who is in the conversation and has clients here watches. */
  function checkConversation(id: string): void {
    const topic = conversationTopic(id);
    for (const { client, username, entries } of [...watches.values()]) {
      if (client.isSubscribed(topic)) check(username, entries.keys());
    }
  }

  function receiveRules({ username, other, conversation }: PresenceRules): void {
    if (conversation !== undefined) checkConversation(conversation);
    else if (username !== undefined && other !== undefined) check(username, [other]);
    else if (username !== undefined) checkPerson(username);
  }

  function receiveEvent(event: EventChange): void {
    const concerned = [...(event.joins?.users ?? []), ...(event.leaves?.users ?? [])];
    if (event.account?.deleted) concerned.push(event.account.username);
    if (event.name === "events.conversationUpdated") concerned.push(...addedBy(event));
    for (const username of new Set(concerned)) checkPerson(username);
  }

  return {
    /** Delivers a change to those whose watches it concerns. */
    receive(change: Delivered): void {
      if (watches.size === 0) return;
      if (change.kind === "event") receiveEvent(change);
      if (change.kind === "presence_changed") receiveRules(change);
      if (change.kind === "leaving_missed") change.leaves.users.forEach(checkPerson);
    },
    async watch(
      username: string,
      usernames: readonly string[],
      socketId: string | undefined,
    ): Promise<{ items: Presence[] }> {
      const client = clientOf(username, socketId);
      const names = [...new Set(usernames)];
      if (client) forget(client);
      const watch = client && names.length > 0 ? begin(client, username, names) : null;
      const number = ++lastCheck;
      for (const entry of watch?.entries.values() ?? []) entry.check = number;
      const told = await ask(username, names).catch((error) => {
        if (client && watches.get(client) === watch) forget(client);
        throw error;
      });
      const items = usernames.map((name) => {
        const entry = watch?.entries.get(name);
        const found = told.get(name);
        const presence = presenceOf(name, found?.seen_at);
        if (entry?.check === number) settle(entry, found !== undefined, presence);
        // A check that began meanwhile decides, and tells what it finds.
        return entry && entry.check !== 0 ? presenceOf(name, undefined) : presence;
      });
      return { items };
    },
    /** Whether the person is at the screen of the client with this socket. */
    setActivity(username: string, active: boolean, socketId: string | undefined): void {
      const client = clientOf(username, socketId);
      if (client) activity.set(username, client, active);
    },
    /** Whether any client of the person, on any node, is active now, or was within so many ms. */
    isActive: activity.isActive,
    /** Stores when people were last online. */
    stop: lastSeen.stop,
  };

  /** The open socket of this id on this node; undefined for calls that come over none. */
  function clientOf(username: string, socketId: string | undefined): Client | undefined {
    if (socketId === undefined) return undefined;
    return hub
      .person(username)
      ?.clients.values()
      .find(({ id }) => id === socketId);
  }
}

function settle(entry: Entry, isTold: boolean, presence: Presence): void {
  entry.check = 0;
  entry.isTold = isTold;
  entry.shown = shownAs(presence);
}

const shownAs = ({ online, last_seen_at }: Presence): Entry["shown"] =>
  online ? "online" : last_seen_at === null ? "nothing" : "seen";

/** The people whom a change of a group names as added. */
function addedBy(event: EventChange): string[] {
  const { params } = frameOf(event) as EventFrame<"events.conversationUpdated">;
  return params.changes
    .filter(({ kind }) => kind === "added")
    .flatMap(({ subjects }) => subjects.map(({ username }: Account) => username));
}

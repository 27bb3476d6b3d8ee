import { Account } from "@parley/protocol";
import { z } from "zod";
import { transient } from "../changes/change.ts";
import type { Changes } from "../changes/stream.ts";
import { publicAccount } from "../rules/accounts.ts";
import { alone, type Cluster } from "./cluster.ts";
import type { Hub } from "./hub.ts";

/** Typing ends when it is not renewed for this long. */
const EXPIRES_MS = 6000;

/** Who is typing among people. The typing events of agents are part of their turns: `domain/turns.ts`. */
export interface Typing {
  start(conversation: string, actor: Account): void;
  stop(conversation: string, actor: Account): void;
}

/** Of two updates that cross on the way, the one with the higher stamp is the later one. */
const TypingUpdate = z.object({
  conversation: z.string(),
  actor: Account,
  stamp: z.int(),
  on: z.boolean(),
});
type TypingUpdate = z.infer<typeof TypingUpdate>;

interface TypingEntry {
  readonly conversation: string;
  readonly actor: Account;
  /** The node that renewed it last: the only one that ends it. */
  holder: string;
  readonly stamp: number;
  readonly timer: NodeJS.Timeout | undefined;
}

/**
 * Typing ends when it is not renewed or when the account's last client is gone. Every node has all
 * entries, so that any node can renew one. The node that renewed an entry last holds it and runs its
 * timer. If that node is gone, the remaining node with the lowest id ends the entry.
 */
export const typing = (
  hub: Pick<Hub, "onGone">,
  { signal }: Pick<Changes, "signal">,
  cluster: Cluster = alone,
  expiresMs = EXPIRES_MS,
): Typing => new TypingTracker(hub, signal, cluster, expiresMs);

class TypingTracker implements Typing {
  private readonly entries = new TypingEntries();
  private readonly signal: Changes["signal"];
  private readonly cluster: Cluster;
  private readonly expiresMs: number;
  private readonly send: (update: TypingUpdate) => void;

  constructor(
    hub: Pick<Hub, "onGone">,
    signal: Changes["signal"],
    cluster: Cluster,
    expiresMs: number,
  ) {
    this.signal = signal;
    this.cluster = cluster;
    this.expiresMs = expiresMs;
    this.send = cluster.share<TypingUpdate>({
      name: "typing",
      schema: TypingUpdate,
      receive: (update, node) => this.receive(update, node),
      state: () => this.entries.heldBy(cluster.node).map(startedUpdate),
      replace: (updates, node) => this.replace(updates, node),
      nodeGone: (node) => this.takeOver(node),
    });
    hub.onGone(({ username }) => {
      for (const entry of this.entries.of(username)) {
        if (this.isHeldHere(entry)) this.end(entry.conversation, entry.actor);
      }
    });
  }

  start(conversation: string, actor: Account): void {
    const known = this.entries.find(conversation, actor.username);
    const isHeldHere = this.isHeldHere(known);
    const stamp = known && isHeldHere ? known.stamp : nextStamp(known);
    const timer = setTimeout(() => this.end(conversation, actor), this.expiresMs);
    const entry = { conversation, actor, holder: this.cluster.node, stamp, timer };
    this.entries.put(entry);
    this.signalTyping(conversation, actor, true);
    if (!isHeldHere) this.send(startedUpdate(entry));
  }

  stop(conversation: string, actor: Account): void {
    this.end(conversation, actor, nextStamp(this.entries.find(conversation, actor.username)));
  }

  private end(conversation: string, actor: Account, stamp?: number): void {
    const known = this.entries.find(conversation, actor.username);
    this.entries.drop(conversation, actor.username);
    this.signalTyping(conversation, actor, false);
    this.send({
      conversation,
      actor: publicAccount(actor),
      stamp: stamp ?? known?.stamp ?? 0,
      on: false,
    });
  }

  /** Applies what another node reports, unless a later update is known. */
  private receive({ conversation, actor, stamp, on }: TypingUpdate, node: string): void {
    const known = this.entries.find(conversation, actor.username);
    const isLater =
      !known || stamp > known.stamp || (stamp === known.stamp && node >= known.holder);
    if (on && isLater) {
      this.entries.put({ conversation, actor, holder: node, stamp, timer: undefined });
    } else if (!on && isLater) {
      this.entries.drop(conversation, actor.username);
    } else if (!on && this.isHeldHere(known)) {
      // The other node has ended it, but it was renewed here since: clients must see it again.
      this.signalTyping(conversation, actor, true);
    }
  }

  /** Replaces the entries that a node holds. */
  private replace(updates: readonly TypingUpdate[], node: string): void {
    const listed = new Set(updates.map(({ conversation, actor }) => keyOf(conversation, actor)));
    for (const { conversation, actor } of this.entries.heldBy(node)) {
      if (!listed.has(keyOf(conversation, actor))) this.entries.drop(conversation, actor.username);
    }
    for (const update of updates) this.receive(update, node);
  }

  /** The remaining node with the lowest id ends the entries of a node that is gone. */
  private takeOver(node: string): void {
    const successor = [this.cluster.node, ...this.cluster.others()].toSorted()[0] ?? "";
    for (const entry of this.entries.heldBy(node)) {
      if (successor === this.cluster.node) this.end(entry.conversation, entry.actor);
      else entry.holder = successor;
    }
  }

  private isHeldHere(entry: TypingEntry | undefined): boolean {
    return entry?.holder === this.cluster.node;
  }

  private signalTyping(conversation_id: string, actor: Account, is_typing: boolean): void {
    const params = { conversation_id, actor: publicAccount(actor), is_typing };
    const to = { conversation: conversation_id };
    this.signal(transient("events.typing", params, to, { exceptUser: actor.username }));
  }
}

/** At most one entry for each account and conversation. */
class TypingEntries {
  /** By username and conversation. */
  private readonly byUser = new Map<string, Map<string, TypingEntry>>();

  find(conversation: string, username: string): TypingEntry | undefined {
    return this.byUser.get(username)?.get(conversation);
  }

  of(username: string): TypingEntry[] {
    return [...(this.byUser.get(username)?.values() ?? [])];
  }

  heldBy(node: string): TypingEntry[] {
    const all = [...this.byUser.keys()].flatMap((username) => this.of(username));
    return all.filter(({ holder }) => holder === node);
  }

  put(entry: TypingEntry): void {
    const { conversation, actor } = entry;
    clearTimeout(this.find(conversation, actor.username)?.timer);
    const entries = this.byUser.get(actor.username) ?? new Map<string, TypingEntry>();
    this.byUser.set(actor.username, entries);
    entries.set(conversation, entry);
  }

  drop(conversation: string, username: string): void {
    const entries = this.byUser.get(username);
    clearTimeout(entries?.get(conversation)?.timer);
    entries?.delete(conversation);
    if (entries?.size === 0) this.byUser.delete(username);
  }
}

const startedUpdate = ({ conversation, actor, stamp }: TypingEntry): TypingUpdate => ({
  conversation,
  actor: publicAccount(actor),
  stamp,
  on: true,
});

const nextStamp = (known: TypingEntry | undefined) => Math.max(Date.now(), (known?.stamp ?? 0) + 1);

const keyOf = (conversation: string, { username }: Account) => `${conversation} ${username}`;

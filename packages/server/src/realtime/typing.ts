import { Account } from "@parley/protocol";
import { z } from "zod";
import { transient } from "../changes/change.ts";
import type { Changes } from "../changes/stream.ts";
import { publicAccount } from "../rules/accounts.ts";
import { alone, type Cluster } from "./cluster.ts";
import type { Hub } from "./hub.ts";

/** Typing ends when it is not renewed for this long. */
const EXPIRES_MS = 6000;

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
  actor: Account;
  /** The node that renewed it last: the only one that ends it. */
  holder: string;
  stamp: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Knows who is typing in which conversation, on all nodes. Typing ends when it is not renewed or when
 * the account's last client is gone. Every node has all entries, so that any node can renew one. The
 * node that renewed an entry last holds it and runs its timer. If that node is gone, the remaining
 * node with the lowest id ends the entry.
 */
export function typing(
  hub: Pick<Hub, "onGone">,
  { signal }: Pick<Changes, "signal">,
  cluster: Cluster = alone,
  expiresMs = EXPIRES_MS,
): Typing {
  /** By username and conversation. */
  const active = new Map<string, Map<string, TypingEntry>>();

  const send = cluster.share<TypingUpdate>({
    name: "typing",
    schema: TypingUpdate,
    receive,
    state: () =>
      [...allEntries()]
        .filter(({ holder }) => holder === cluster.node)
        .map(({ conversation, actor, stamp }) => ({ conversation, actor, stamp, on: true })),
    replace(items, node) {
      const on = new Set(
        items.map(({ conversation, actor }) => `${conversation} ${actor.username}`),
      );
      for (const { conversation, actor, holder } of [...allEntries()]) {
        if (holder === node && !on.has(`${conversation} ${actor.username}`)) {
          drop(conversation, actor.username);
        }
      }
      for (const item of items) receive(item, node);
    },
    nodeGone(node) {
      const successor = [cluster.node, ...cluster.others()].toSorted()[0];
      for (const { conversation, actor, holder } of [...allEntries()]) {
        if (holder !== node) continue;
        if (successor === cluster.node) end(conversation, actor);
        else setHolder(conversation, actor.username, successor);
      }
    },
  });

  const find = (conversation: string, username: string) => active.get(username)?.get(conversation);

  function* allEntries(): Generator<TypingEntry & { conversation: string }> {
    for (const entries of active.values()) {
      for (const [conversation, entry] of entries) yield { ...entry, conversation };
    }
  }

  function put(conversation: string, entry: TypingEntry): void {
    const { username } = entry.actor;
    clearTimeout(find(conversation, username)?.timer);
    const entries = active.get(username) ?? new Map<string, TypingEntry>();
    active.set(username, entries);
    entries.set(conversation, entry);
  }

  function drop(conversation: string, username: string): void {
    const entries = active.get(username);
    clearTimeout(entries?.get(conversation)?.timer);
    entries?.delete(conversation);
    if (entries?.size === 0) active.delete(username);
  }

  function setHolder(conversation: string, username: string, holder = ""): void {
    const entry = find(conversation, username);
    if (entry) entry.holder = holder;
  }

  function receive({ conversation, actor, stamp, on }: TypingUpdate, node: string): void {
    const known = find(conversation, actor.username);
    const isOurs = known?.holder === cluster.node;
    const isLater =
      !known || stamp > known.stamp || (stamp === known.stamp && node >= known.holder);
    if (on && isLater) put(conversation, { actor, holder: node, stamp, timer: undefined });
    else if (!on && isLater) drop(conversation, actor.username);
    // The other node has ended it, but it was renewed here since: clients must see it again.
    else if (!on && isOurs) signalTyping(conversation, actor, true);
  }

  const signalTyping = (conversation_id: string, actor: Account, is_typing: boolean) => {
    const params = { conversation_id, actor: publicAccount(actor), is_typing };
    const to = { conversation: conversation_id };
    signal(transient("events.typing", params, to, { exceptUser: actor.username }));
  };

  function end(conversation: string, actor: Account, stamp?: number): void {
    const known = find(conversation, actor.username);
    drop(conversation, actor.username);
    signalTyping(conversation, actor, false);
    send({
      conversation,
      actor: publicAccount(actor),
      stamp: stamp ?? known?.stamp ?? 0,
      on: false,
    });
  }

  const nextStamp = (known: TypingEntry | undefined) =>
    Math.max(Date.now(), (known?.stamp ?? 0) + 1);

  hub.onGone(({ username }) => {
    for (const [conversation, { actor, holder }] of [...(active.get(username) ?? [])]) {
      if (holder === cluster.node) end(conversation, actor);
    }
  });

  return {
    start(conversation, actor) {
      const known = find(conversation, actor.username);
      const isOurs = known?.holder === cluster.node;
      const stamp = known && isOurs ? known.stamp : nextStamp(known);
      const timer = setTimeout(() => end(conversation, actor), expiresMs);
      put(conversation, { actor, holder: cluster.node, stamp, timer });
      signalTyping(conversation, actor, true);
      if (!isOurs) send({ conversation, actor: publicAccount(actor), stamp, on: true });
    },
    stop(conversation, actor) {
      end(conversation, actor, nextStamp(find(conversation, actor.username)));
    },
  };
}

import { Account } from "@parley/protocol";
import { z } from "zod";
import { transient } from "../changes/change.ts";
import type { Changes } from "../changes/stream.ts";
import { publicAccount } from "../rules/accounts.ts";
import { alone, type Cluster } from "./cluster.ts";
import type { Hub } from "./hub.ts";

const EXPIRES_MS = 6000;

export interface Typing {
  start(conversation: string, actor: Account): void;
  stop(conversation: string, actor: Account): void;
}

/** The stamp tells which of two that crossed on their way is the later one. */
const Shown = z.object({
  conversation: z.string(),
  actor: Account,
  stamp: z.int(),
  on: z.boolean(),
});
type Shown = z.infer<typeof Shown>;

interface Active {
  actor: Account;
  /** The node where it was last renewed. It alone ends it. */
  holder: string;
  stamp: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Who is typing where, on all nodes. It ends by itself when it is not renewed or when the last of
 * the account's clients has gone. Every node knows of everyone, so that a renewal anywhere is one;
 * the node that renewed it last has the timer, and another ends it should that node be gone.
 */
export function typing(
  hub: Pick<Hub, "onGone">,
  { signal }: Pick<Changes, "signal">,
  cluster: Cluster = alone,
  expiresMs = EXPIRES_MS,
): Typing {
  const active = new Map<string, Map<string, Active>>();

  const tell = cluster.share<Shown>({
    name: "typing",
    schema: Shown,
    receive,
    state: () =>
      [...everything()]
        .filter(({ holder }) => holder === cluster.node)
        .map(({ conversation, actor, stamp }) => ({ conversation, actor, stamp, on: true })),
    replace(items, node) {
      const on = new Set(
        items.map(({ conversation, actor }) => `${conversation} ${actor.username}`),
      );
      for (const { conversation, actor, holder } of [...everything()]) {
        if (holder === node && !on.has(`${conversation} ${actor.username}`)) {
          drop(conversation, actor.username);
        }
      }
      for (const item of items) receive(item, node);
    },
    forget(node) {
      const heir = [cluster.node, ...cluster.others()].toSorted()[0];
      for (const { conversation, actor, holder } of [...everything()]) {
        if (holder !== node) continue;
        if (heir === cluster.node) end(conversation, actor);
        else adopt(conversation, actor.username, heir);
      }
    },
  });

  const find = (conversation: string, username: string) => active.get(username)?.get(conversation);

  function* everything(): Generator<Active & { conversation: string }> {
    for (const theirs of active.values()) {
      for (const [conversation, each] of theirs) yield { ...each, conversation };
    }
  }

  function put(conversation: string, entry: Active): void {
    const { username } = entry.actor;
    clearTimeout(find(conversation, username)?.timer);
    const theirs = active.get(username) ?? new Map<string, Active>();
    active.set(username, theirs);
    theirs.set(conversation, entry);
  }

  function drop(conversation: string, username: string): void {
    const theirs = active.get(username);
    clearTimeout(theirs?.get(conversation)?.timer);
    theirs?.delete(conversation);
    if (theirs?.size === 0) active.delete(username);
  }

  function adopt(conversation: string, username: string, holder = ""): void {
    const entry = find(conversation, username);
    if (entry) entry.holder = holder;
  }

  function receive({ conversation, actor, stamp, on }: Shown, node: string): void {
    const known = find(conversation, actor.username);
    const isOurs = known?.holder === cluster.node;
    const isLater =
      !known || stamp > known.stamp || (stamp === known.stamp && node >= known.holder);
    if (on && isLater) put(conversation, { actor, holder: node, stamp, timer: undefined });
    else if (!on && isLater) drop(conversation, actor.username);
    // It was renewed here while it ended there.
    else if (!on && isOurs) show(conversation, actor, true);
  }

  const show = (conversation_id: string, actor: Account, is_typing: boolean) => {
    const params = { conversation_id, actor: publicAccount(actor), is_typing };
    const to = { conversation: conversation_id };
    signal(transient("events.typing", params, to, { exceptUser: actor.username }));
  };

  function end(conversation: string, actor: Account, stamp?: number): void {
    const known = find(conversation, actor.username);
    drop(conversation, actor.username);
    show(conversation, actor, false);
    tell({
      conversation,
      actor: publicAccount(actor),
      stamp: stamp ?? known?.stamp ?? 0,
      on: false,
    });
  }

  const later = (known: Active | undefined) => Math.max(Date.now(), (known?.stamp ?? 0) + 1);

  hub.onGone(({ username }) => {
    for (const [conversation, { actor, holder }] of [...(active.get(username) ?? [])]) {
      if (holder === cluster.node) end(conversation, actor);
    }
  });

  return {
    start(conversation, actor) {
      const known = find(conversation, actor.username);
      const isOurs = known?.holder === cluster.node;
      const stamp = known && isOurs ? known.stamp : later(known);
      const timer = setTimeout(() => end(conversation, actor), expiresMs);
      put(conversation, { actor, holder: cluster.node, stamp, timer });
      show(conversation, actor, true);
      if (!isOurs) tell({ conversation, actor: publicAccount(actor), stamp, on: true });
    },
    stop(conversation, actor) {
      end(conversation, actor, later(find(conversation, actor.username)));
    },
  };
}

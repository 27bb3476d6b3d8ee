import { z } from "zod";
import type { Bus, Delivered } from "./bus.ts";
import type { Change, TransientChange } from "./change.ts";
import type { Cluster } from "./cluster.ts";
import type { ChangeStore, SubscriptionWrites } from "./log.ts";
import {
  type ChangeHandler,
  createSubscription,
  type Subscription,
  type SubscriptionOptions,
} from "./subscription.ts";
import { type TailOptions, tailLog } from "./tail.ts";

/** `Tx`: what units of work of the store may write. */
export type Changes<Tx extends SubscriptionWrites = SubscriptionWrites> = Awaited<
  ReturnType<typeof openChangeStream<Tx>>
>;

type SubscribeOptions = Pick<SubscriptionOptions<SubscriptionWrites>, "from" | "batchMs">;

export interface ChangesOptions<Tx extends SubscriptionWrites>
  extends Omit<TailOptions, "awayMs">,
    Partial<Pick<TailOptions, "awayMs">> {
  store: ChangeStore<Tx>;
  bus: Bus;
  /** Reports nodes that were disconnected or died: they may have commits that they did not publish. */
  cluster: Pick<Cluster, "share">;
}

const AWAY_MS = 300;

/** Carries changes from the commit to all subscribers. */
export async function openChangeStream<Tx extends SubscriptionWrites>(options: ChangesOptions<Tx>) {
  const { store, bus, cluster, node, log, everyMs, awayMs = AWAY_MS } = options;
  const listeners: ((change: Delivered) => void)[] = [];
  const subscriptions: Subscription[] = [];

  /** A failed delivery prevents neither that of other changes nor that to other listeners. */
  const deliverOrLog = <Each extends Delivered>(deliver: (change: Each) => void, change: Each) => {
    try {
      deliver(change);
    } catch (error) {
      log.error({ err: error, kind: change.kind }, "change delivery failed");
    }
  };

  const publish = (change: Change) => bus.publish(change);
  const deliver = (change: Delivered) => {
    for (const listener of listeners) deliverOrLog(listener, change);
  };
  bus.onChange(deliver);
  const tail = await tailLog({ store, bus, node, log, everyMs, awayMs });
  const catchUp = () =>
    tail.now().catch((error) => log.error({ err: error }, "change log read failed"));
  bus.onGap(() => tail.now());
  const noItems = { name: "changes", schema: z.never(), receive: () => {} };
  cluster.share({ ...noItems, nodeUp: catchUp, nodeGone: catchUp });
  store.onCommit((changes) => {
    for (const change of changes) deliverOrLog(publish, change);
    if (changes.length > 0) for (const subscriber of subscriptions) subscriber.wake();
  });

  return {
    /**
     * Calls the handler with every change of every node, transient ones included, as soon as it is
     * known here. What was committed before is not repeated.
     */
    listen: (handler: (change: Delivered) => void) => void listeners.push(handler),
    /**
     * Calls the handler with every durable change after a position, in commit order. The position is
     * stored under the name: across restarts, and wherever several nodes subscribe under one name, one
     * of them handles each change, and none is missed. A change is handled again if the process ends
     * before its position is stored.
     */
    subscribe(name: string, from: SubscribeOptions, handler: ChangeHandler<Tx>): Subscription {
      const added = createSubscription({ ...from, name, handler, store, node, log });
      subscriptions.push(added);
      return added;
    },
    /** Sends a change that is not stored. */
    signal: (change: TransientChange) => bus.publish(change),
    /** Delivers what concerns this node alone to its listeners. */
    signalHere: deliver,
    /** Reads and delivers what this node has missed, at once. */
    catchUp,
    async stop(): Promise<void> {
      await Promise.all(subscriptions.map((each) => each.stop()));
      await tail.stop();
    },
  };
}

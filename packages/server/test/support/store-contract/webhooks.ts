import { expect } from "bun:test";
import { mayCreatorRead } from "../../../src/outbound/webhook-creator.ts";
import type { Store } from "../../../src/store/store.ts";
import type {
  DeliveryRecord,
  Lane,
  NewDelivery,
  WebhookRecord,
} from "../../../src/store/webhooks.ts";
import { type Check, newAccount, newAgent, START } from "./fixture.ts";

const HOUR_MS = 60 * 60 * 1000;

async function newWebhook(store: Store, id = "w1", creator: string | null = null): Promise<void> {
  await store.write((tx) =>
    tx.insertWebhook({
      id,
      name: null,
      url: "https://example.com/hook",
      secret: "sealed",
      events: ["events.messageNew"],
      chat: null,
      creator,
      since: 7,
      created_at: START,
    }),
  );
}

const delivery = (message_id: string, lane = "one", webhook_id = "w1"): NewDelivery => ({
  webhook_id,
  message_id,
  lane,
  event: "events.messageNew",
  change: { kind: "session_ended", session_id: message_id },
  at: START,
});

const queue = (store: Store, ...deliveries: NewDelivery[]) =>
  store.note((tx) => tx.queueDeliveries(deliveries));
const claim = (store: Store, claimMs = HOUR_MS, limit = 10) =>
  store.note((tx) => tx.claimLanes("w1", claimMs, limit));
const next = async (store: Store, lane: Lane) =>
  (await store.read((tx) => tx.nextDeliveries(lane, 1)))[0] ?? null;
const attempt = { at: START, duration_ms: 5, status: 200, error: null };
const finish = (
  store: Store,
  lane: Lane,
  { id }: DeliveryRecord,
  status: "delivered" | "pending" = "delivered",
  retryMs: number | null = null,
) => {
  const attempted = { id, status, attempts: 1, history: [attempt] };
  return store.note((tx) => tx.finishAttempts(lane, [attempted], retryMs));
};

/** Claims the only lane that is due, and reads what it sends next. */
async function claimOne(store: Store): Promise<{ lane: Lane; head: DeliveryRecord }> {
  const lanes = await claim(store);
  expect(lanes).toHaveLength(1);
  const [lane] = lanes as [Lane];
  const head = await next(store, lane);
  if (!head) throw new Error("the lane has nothing to send");
  return { lane, head };
}

export function webhooks(check: Check): void {
  check("a webhook is changed field by field", async ({ store }) => {
    await newWebhook(store);
    const set = (fields: {
      url?: string;
      events?: string[];
      disabled?: "gone" | null;
      since?: number;
    }) => store.write((tx) => tx.setWebhook("w1", fields));
    const stored = () => store.read((tx) => tx.webhook("w1"));
    await set({ disabled: "gone" });
    expect(await stored()).toMatchObject({
      url: "https://example.com/hook",
      disabled: "gone",
      since: 7,
    });
    await set({ disabled: null, events: [], since: 9 });
    expect(await stored()).toMatchObject({ disabled: null, events: [], chat: null, since: 9 });
    await store.write((tx) => tx.resealWebhook("w1", "other", "lost"));
    await store.write((tx) => tx.resealWebhook("w1", "sealed", "resealed"));
    expect(await stored()).toMatchObject({ secret: "resealed" });
    expect(await store.read((tx) => tx.webhook("w2"))).toBeNull();
  });

  check("a webhook keeps who created it", async ({ store }) => {
    await newWebhook(store);
    await newWebhook(store, "w2", "olga");
    await store.write((tx) => tx.setWebhook("w2", { disabled: "creator" }));
    const stored = await store.read((tx) => tx.webhooks());
    expect(stored.map(({ creator, disabled }) => [creator, disabled])).toEqual([
      [null, null],
      ["olga", "creator"],
    ]);
  });

  check("an operator may read what a webhook of their own is sent", async (fixture) => {
    const { store } = fixture;
    const [olga, bob] = await fixture.people("olga", "bob");
    const { uuid } = await fixture.group(bob, olga);
    const mayRead = (creator: string | null, chat: string | null = uuid) =>
      store.read((tx) => mayCreatorRead(tx, { creator, chat }, ["bob"]));
    expect(await mayRead(null, null)).toBe(true);
    expect(await mayRead("bob")).toBe(true);
    expect(await mayRead("bob", null)).toBe(false);
    expect(await mayRead("bob", Bun.randomUUIDv7())).toBe(false);
    expect(await mayRead("olga")).toBe(false);
    await store.write((tx) => tx.addOperator(olga.id, START));
    expect(await mayRead("olga")).toBe(true);
    await store.write((tx) => tx.setSuspended(olga.id, START));
    expect(await mayRead("olga")).toBe(false);
  });

  check("the deliveries of a lane are sent in order, one at a time", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"), delivery("b"));
    const first = await claimOne(store);
    expect(first.head).toMatchObject({ message_id: "a", status: "pending", attempts: 0 });
    expect(first.head.change).toEqual({ kind: "session_ended", session_id: "a" });
    expect(await claim(store)).toEqual([]);
    expect(await finish(store, first.lane, first.head)).toBe(true);
    const second = await claimOne(store);
    expect(second.head.message_id).toBe("b");
    await finish(store, second.lane, second.head);
    expect(await claim(store)).toEqual([]);
    expect(await store.read((tx) => tx.dueWebhooks())).toEqual([]);
    const ended = await store.read((tx) => tx.deliveries({ webhookId: "w1", limit: 10 }));
    expect(ended.map(({ message_id, status, history }) => [message_id, status, history])).toEqual([
      ["b", "delivered", [attempt]],
      ["a", "delivered", [attempt]],
    ]);
  });

  check("several deliveries of a lane can end with one claim", async ({ store }) => {
    await newWebhook(store);
    await queue(store, ...["a", "b", "c"].map((id) => delivery(id)), delivery("d", "two"));
    const lanes = await claim(store);
    const next = await store.read((tx) =>
      Promise.all(lanes.map((lane) => tx.nextDeliveries(lane, 2))),
    );
    const ids = next.map((deliveries) => deliveries.map(({ message_id }) => message_id));
    expect(new Set(ids)).toEqual(new Set([["a", "b"], ["d"]]));
    const held = await store.note((tx) =>
      Promise.all(
        lanes.map((lane, place) => {
          const ended = next[place]?.map(({ id }, order) => ({
            id,
            status: order === 0 ? ("delivered" as const) : ("skipped" as const),
            attempts: order + 1,
            history: [attempt],
          }));
          return tx.finishAttempts(lane, ended ?? [], null);
        }),
      ),
    );
    expect(held).toEqual([true, true]);
    const { head } = await claimOne(store);
    expect(head.message_id).toBe("c");
    const found = await store.read((tx) => tx.deliveries({ webhookId: "w1", limit: 10 }));
    expect(found.map(({ message_id, status, attempts }) => [message_id, status, attempts])).toEqual(
      [
        ["d", "delivered", 1],
        ["c", "pending", 0],
        ["b", "skipped", 2],
        ["a", "delivered", 1],
      ],
    );
  });

  check(
    "a delivery that is still pending after an attempt is due at once without a delay",
    async ({ store }) => {
      await newWebhook(store);
      await queue(store, delivery("a"));
      const { lane, head } = await claimOne(store);
      await finish(store, lane, head, "pending");
      expect((await claimOne(store)).head).toMatchObject({ message_id: "a", attempts: 1 });
    },
  );

  check("a lane that waits for a retry keeps no other lane back", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"), delivery("b"));
    const { lane, head } = await claimOne(store);
    await finish(store, lane, head, "pending", HOUR_MS);
    await queue(store, delivery("c"), delivery("d", "two"));
    expect(await store.read((tx) => tx.dueWebhooks())).toEqual(["w1"]);
    const other = await claimOne(store);
    expect(other.head.message_id).toBe("d");
    expect(await store.read((tx) => tx.pendingDeliveries(10))).toBe(4);
    expect(await store.read((tx) => tx.pendingDeliveries(3))).toBe(3);
    expect(await next(store, lane)).toMatchObject({ message_id: "a", attempts: 1 });
  });

  check("what is queued while the last delivery ends is due at once", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"));
    const { lane, head } = await claimOne(store);
    await queue(store, delivery("b"));
    await finish(store, lane, head);
    expect((await claimOne(store)).head.message_id).toBe("b");
  });

  check("deliveries that are queued again are left out", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"));
    await queue(store, delivery("a"), delivery("b"));
    const found = await store.read((tx) => tx.deliveries({ webhookId: "w1", limit: 10 }));
    expect(found.map(({ message_id }) => message_id)).toEqual(["b", "a"]);
  });

  check("an expired claim changes nothing any more", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"));
    const [old] = (await claim(store, 0)) as [Lane];
    const { lane, head } = await claimOne(store);
    expect(await finish(store, old, head)).toBe(false);
    await store.note((tx) => tx.parkLane({ ...old, version: 0 }));
    expect(await claim(store)).toEqual([]);
    expect(await next(store, lane)).toMatchObject({ message_id: "a", attempts: 0 });
    expect(await finish(store, lane, head)).toBe(true);
  });

  check("a parked lane is due again once something is queued", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"));
    const parked = (await claimOne(store)).lane;
    await store.note((tx) => tx.parkLane(parked));
    expect(await claim(store)).toEqual([]);
    await queue(store, delivery("b"));
    const meanwhile = (await claimOne(store)).lane;
    await queue(store, delivery("c"));
    await store.note((tx) => tx.parkLane(meanwhile));
    const { lane } = await claimOne(store);
    await store.note((tx) => tx.parkLane({ ...lane, version: 0 }));
    const again = await claimOne(store);
    await store.note((tx) => tx.parkLane(again.lane));
    expect(await store.read((tx) => tx.webhook("w1"))).toMatchObject({ resumed_at: 0 });
    await store.write((tx) => tx.resumeLanes("w1", HOUR_MS, START + 1));
    expect((await claimOne(store)).head.message_id).toBe("a");
    expect(await store.read((tx) => tx.webhook("w1"))).toMatchObject({ resumed_at: START + 1 });
  });

  check("resumed lanes do not wait for a retry, but for the end of a claim", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"));
    const { lane, head } = await claimOne(store);
    await finish(store, lane, head, "pending", 2 * HOUR_MS);
    await queue(store, delivery("b", "two"));
    const claimed = (await claimOne(store)).lane;
    await store.write((tx) => tx.resumeLanes("w1", HOUR_MS, START));
    expect((await claimOne(store)).head.message_id).toBe("a");
    await store.note((tx) => tx.parkLane(claimed));
    expect((await claimOne(store)).head.message_id).toBe("b");
  });

  check("a webhook is disabled only as it was when it was read", async ({ store }) => {
    await newWebhook(store);
    const read = async () => {
      const webhook = await store.read((tx) => tx.webhook("w1"));
      if (!webhook) throw new Error("the webhook is gone");
      return webhook;
    };
    const disable = (webhook: WebhookRecord) =>
      store.write((tx) => tx.disableWebhook(webhook, "gone"));
    const before = await read();
    await store.write((tx) => tx.resumeLanes("w1", HOUR_MS, START));
    expect(await disable(before)).toBe(false);
    expect((await read()).disabled).toBeNull();
    expect(await disable(await read())).toBe(true);
    expect(await disable(await read())).toBe(false);
    expect((await read()).disabled).toBe("gone");
  });

  check("an ended delivery can be queued again", async ({ store }) => {
    await newWebhook(store);
    await queue(store, delivery("a"), delivery("b"));
    const { lane, head } = await claimOne(store);
    await finish(store, lane, head);
    const ended = await store.read((tx) => tx.delivery(head.id));
    if (!ended) throw new Error("the delivery is gone");
    await store.write((tx) => tx.requeueDelivery(ended, START + 1));
    const again = await claimOne(store);
    expect(again.head).toMatchObject({ message_id: "a", queued_at: START + 1, attempts: 0 });
    expect(again.head.created_at).toBe(START);
  });

  check("ended deliveries are pruned by age and number, pending ones never", async ({ store }) => {
    await newWebhook(store);
    const ids = ["a", "b", "c", "d"];
    await queue(store, ...ids.map((id) => delivery(id)), delivery("e", "two"));
    for (const _ of ids) {
      const lanes = await claim(store, 0);
      const lane = lanes.find((each) => each.lane === "one") as Lane;
      await finish(store, lane, (await next(store, lane)) as DeliveryRecord);
    }
    const prune = (before: number, kept: number, most = 10) =>
      store.note((tx) => tx.pruneDeliveries({ webhookId: "w1", before, kept, most }));
    const left = async () => {
      const found = await store.read((tx) => tx.deliveries({ webhookId: "w1", limit: 10 }));
      return found.map(({ message_id }) => message_id);
    };
    expect(await prune(START, 3)).toBe(1);
    expect(await left()).toEqual(["e", "d", "c", "b"]);
    expect(await prune(START + 1, 3, 2)).toBe(2);
    expect(await prune(START + 1, 3, 2)).toBe(1);
    expect(await left()).toEqual(["e"]);
  });

  check("the account of an incoming hook is not among its owner's agents", async ({ store }) => {
    const chat = Bun.randomUUIDv7();
    const { agents, hook, found, listed, created } = await store.write(async (tx) => {
      const alice = await newAccount(tx, { username: "alice" });
      await newAgent(tx, alice, "claude");
      const owner_id = alice.id;
      await newAccount(tx, { username: "alice:ci", kind: "agent", owner_id });
      const made = {
        id: "h1",
        secret_hash: "hash",
        chat,
        name: "ci",
        creator: "alice",
        account: "alice:ci",
        created_at: START,
      };
      await tx.insertIncomingHook(made);
      return {
        hook: made,
        found: await tx.incomingHook("h1"),
        listed: await tx.incomingHooks(chat),
        created: await tx.incomingHooksBy("alice"),
        agents: await tx.agents(alice.id),
      };
    });
    expect(agents.map(({ account }) => account.username)).toEqual(["alice:claude"]);
    expect(found).toEqual(hook);
    expect([listed, created]).toEqual([[hook], [hook]]);
    expect(await store.read((tx) => tx.incomingHooksBy("bob"))).toEqual([]);
    await store.write((tx) => tx.deleteIncomingHook("h1"));
    expect(await store.read((tx) => tx.incomingHook("h1"))).toBeNull();
    expect(await store.read((tx) => tx.incomingHooks(chat))).toEqual([]);
  });

  check(
    "a deleted webhook is sent nothing, and its deliveries are pruned in batches",
    async ({ store }) => {
      for (const id of ["w0", "w1", "w2", "w3"]) await newWebhook(store, id);
      const ended = delivery("ended", "other");
      await queue(store, ended, delivery("kept", "one", "w0"), delivery("kept", "one", "w3"));
      const { lane, head } = await claimOne(store);
      await finish(store, lane, head);
      const lanes = ["one", "two", "three"];
      await queue(store, ...lanes.map((name) => delivery(name, name)));
      await queue(store, ...lanes.map((name) => delivery(name, name, "w2")));
      const prune = () => store.note((tx) => tx.pruneDeletedWebhooks(2));
      expect(await prune()).toBe(0);
      for (const id of ["w1", "w2"]) {
        expect(await store.write((tx) => tx.deleteWebhook(id))).toBe(true);
        expect(await store.write((tx) => tx.deleteWebhook(id))).toBe(false);
      }
      await queue(store, delivery("later"));
      expect((await store.read((tx) => tx.dueWebhooks())).toSorted()).toEqual(["w0", "w3"]);
      expect((await store.read((tx) => tx.webhooks())).map(({ id }) => id)).toEqual(["w0", "w3"]);
      const batches: number[] = [];
      for (let count = await prune(); count > 0; count = await prune()) batches.push(count);
      expect(batches.reduce((sum, count) => sum + count)).toBe(14);
      expect(Math.max(...batches)).toBe(4);
      const left = async (webhookId: string) =>
        (await store.read((tx) => tx.deliveries({ webhookId, limit: 10 }))).length;
      expect(await Promise.all(["w0", "w1", "w2", "w3"].map(left))).toEqual([1, 0, 0, 1]);
      expect(await claim(store)).toEqual([]);
    },
  );
}

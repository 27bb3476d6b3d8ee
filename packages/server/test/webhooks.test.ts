import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startReceiver } from "@parley/testkit/receiver.ts";
import { until } from "@parley/testkit/until.ts";
import pino from "pino";
import type { Bound } from "../src/calls/bind.ts";
import type { Needs } from "../src/calls/needs.ts";
import { createMemoryBus } from "../src/changes/bus-memory.ts";
import { counted } from "../src/changes/change.ts";
import { alone } from "../src/changes/cluster.ts";
import { openChangeStream } from "../src/changes/stream.ts";
import { createMetrics } from "../src/observe/metrics.ts";
import { webhooks as operations } from "../src/operations/webhooks.ts";
import { newSecret } from "../src/outbound/standard-webhooks.ts";
import { secretBinding } from "../src/outbound/webhook-attempt.ts";
import { retryDelayMs } from "../src/outbound/webhook-lane.ts";
import { queueChanges } from "../src/outbound/webhook-queue.ts";
import { startWebhooks } from "../src/outbound/webhooks.ts";
import { createAuditLog } from "../src/security/audit-log.ts";
import { createGuardedFetch, type GuardedFetch } from "../src/security/guarded-fetch.ts";
import { createVault } from "../src/security/vault.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { Unavailable } from "../src/store/store.ts";
import type { DeliveryRecord, Lane, NewDelivery } from "../src/store/webhooks.ts";

const log = pino({ level: "silent" });
const DAY_MS = 24 * 60 * 60 * 1000;

const NEW_URL = "https://192.0.2.1/new";

/** Deliveries of a conversation, by their numbers. */
const deliveriesOf = (
  lane: string,
  seqs: number[],
  { id = "hook", at = Date.now() } = {},
): NewDelivery[] =>
  seqs.map((seq) => {
    const params = { conversation_id: lane, ids: [] };
    const change = counted("events.messageDeleted", params, lane, seq);
    const message_id = `${lane} ${seq}`;
    return { webhook_id: id, message_id, lane, event: change.name, change, at };
  });

/** A webhook on a store of its own. */
async function startWebhook(fetch: GuardedFetch, url: string) {
  const folder = mkdtempSync(join(tmpdir(), "parley-webhooks-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const common = { store, log, node: "one" };
  const changes = await openChangeStream({
    ...common,
    bus: createMemoryBus(),
    cluster: alone,
    everyMs: 1000,
  });
  const vault = createVault([Buffer.alloc(32, 7)]);
  const of = { name: null, events: [], chat: null, creator: null, since: 0 };
  const like = (id: string, itsUrl: string) => {
    const secret = vault.seal(newSecret(), secretBinding(id));
    return { ...of, id, url: itsUrl, secret, created_at: Date.now() };
  };
  await store.write((tx) => tx.insertWebhook(like("hook", url)));
  const figures = createMetrics();
  const audit = createAuditLog(log, store);
  const sender = startWebhooks({
    store,
    changes,
    vault,
    fetch,
    audit,
    operators: [],
    log,
    metrics: figures,
  });
  let seq = 0;
  return {
    store,
    figures,
    emit: (conversation = "chat") =>
      store.write((tx) => {
        const params = { conversation_id: conversation, ids: [] };
        tx.emit(counted("events.messageDeleted", params, conversation, ++seq));
      }),
    /** Queues a delivery with the age of an old one, perhaps one that has failed many times. */
    queueOld: (ageMs: number, failures = 0) =>
      store.write(async (tx) => {
        const at = Date.now() - ageMs;
        await tx.queueDeliveries(deliveriesOf("old", [1], { at }));
        if (failures === 0) return;
        const [lane] = (await tx.claimLanes("hook", DAY_MS, 1)) as [Lane];
        const [{ id }] = (await tx.nextDeliveries(lane, 1)) as [DeliveryRecord];
        const history = Array(20).fill({ at, duration_ms: 1, status: 500, error: "failed" });
        const failed = { id, status: "pending", attempts: failures, history } as const;
        await tx.finishAttempts(lane, [failed], DAY_MS);
      }),
    /** Queues deliveries, each in a lane of its own. */
    queueLanes: (count: number) =>
      store.write((tx) => {
        const lanes = Array.from({ length: count }, (_, place) => `lane ${place}`);
        return tx.queueDeliveries(lanes.flatMap((lane) => deliveriesOf(lane, [1])));
      }),
    /** Calls setWebhook with a service key. */
    set: (settings: { url?: string; disabled?: boolean }) => {
      const bound = operations
        .bind({} as Needs)
        .find(({ contract }) => contract.name === "setWebhook");
      const context = {
        store,
        audit,
        webhooks: sender,
        config: { allowPrivateAddresses: true },
        caller: { kind: "service", key: { name: "test" } },
        origin: { address: "127.0.0.1", network: "127.0.0.1", user_agent: null },
      };
      return bound?.handle(context as unknown as Parameters<Bound["handle"]>[0], {
        webhook_id: "hook",
        ...settings,
      });
    },
    shown: () => store.read((tx) => tx.webhook("hook")),
    /** Another webhook for the same sender. */
    like,
    wake: () => sender.wake(),
    /** Waits until the metrics show this number of deliveries that have not ended. */
    showsPending: (count: number) =>
      until(() => {
        // The sender counts when it is woken.
        sender.wake();
        return figures.text().includes(`parley_webhook_deliveries_pending ${count}\n`);
      }, `${count} deliveries`),
    deliveries: (limit = 10) => store.read((tx) => tx.deliveries({ webhookId: "hook", limit })),
    stopSender: () => sender.stop(),
    [Symbol.asyncDispose]: async () => {
      await sender.stop();
      await changes.stop();
      await store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

test("a name that leads to a private address later is not contacted there", async () => {
  await using receiver = startReceiver();
  const { port } = new URL(receiver.url);
  // The name led to a public address when the webhook was created, and leads to private ones now.
  const addresses = ["127.0.0.1", "10.0.0.1", "::1"];
  const resolve = async () => [addresses[asked++ % addresses.length] as string];
  let asked = 0;
  const fetch = createGuardedFetch({ allowPrivate: false, resolve });
  await using hook = await startWebhook(fetch, `https://rebound.example:${port}/hook`);
  await until(() => hook.figures.text().includes("parley_webhook_attempts_total"), "the start");
  let failed = 0;
  while (failed < 2) {
    if ((await hook.deliveries()).length === 0) await hook.emit();
    failed = (await hook.deliveries()).at(-1)?.attempts ?? 0;
    await Bun.sleep(20);
  }
  const first = (await hook.deliveries()).at(-1);
  expect(first?.history[0]).toMatchObject({
    status: null,
    error: "the address belongs to a private or special range",
  });
  expect(asked).toBeGreaterThanOrEqual(2);
  expect(receiver.received).toEqual([]);
  expect(hook.figures.text()).toMatch(/attempts_total\{outcome="failed"\} [1-9]/);
});

test("changes that are handled twice do not reach webhooks that were created meanwhile", async () => {
  await using hook = await startWebhook(async () => new Response("ok"), "https://example.com/hook");
  const { store } = hook;
  await hook.emit();
  const since = await store.changes.head();
  const settings = { url: "https://example.com/later", secret: "", events: [], chat: null };
  const later = {
    ...settings,
    id: "later",
    name: null,
    creator: null,
    since,
    created_at: Date.now(),
  };
  await store.write((tx) => tx.insertWebhook(later));
  await hook.emit();
  const entries = (await store.changes.read(0, 10)) ?? [];
  for (let time = 0; time < 2; time++) {
    const checks = { store, operators: [], audit: createAuditLog(log, store) };
    const deliveries = await queueChanges(entries, checks);
    await store.note((tx) => tx.queueDeliveries(deliveries));
  }
  const received = async (webhookId: string) =>
    (await store.read((tx) => tx.deliveries({ webhookId, limit: 10 }))).map(({ change }) =>
      change.kind === "event" ? change.at?.seq : null,
    );
  expect(await received("hook")).toEqual([2, 1]);
  expect(await received("later")).toEqual([2]);
});

test("a delivery is given up after three days, and the next one follows", async () => {
  const answered: string[] = [];
  const fetch: GuardedFetch = async (_, { headers } = {}) => {
    answered.push(new Headers(headers).get("webhook-id") ?? "");
    return new Response(null, { status: 500 });
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.queueOld(3 * DAY_MS);
  const status = async () => (await hook.deliveries()).at(-1)?.status;
  while ((await status()) !== "failed") await Bun.sleep(20);
  expect(answered).toEqual(["old 1"]);
  expect(hook.figures.text()).toContain("parley_webhook_deliveries_failed_total 1\n");
});

test("the metrics show how many deliveries have not ended, up to 10,000", async () => {
  await using hook = await startWebhook(async () => new Response("ok"), "https://example.com/hook");
  await hook.set({ disabled: true });
  await hook.queueLanes(3);
  await hook.showsPending(3);
  const many = Array.from({ length: 10_000 }, (_, place) => place + 1);
  await hook.store.write((tx) => tx.queueDeliveries(deliveriesOf("chat", many)));
  await hook.showsPending(10_000);
});

test("the metrics show that all deliveries have ended", async () => {
  let isDown = true;
  const fetch: GuardedFetch = async () => new Response(null, { status: isDown ? 500 : 200 });
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.queueLanes(2);
  await hook.showsPending(2);
  isDown = false;
  await hook.showsPending(0);
});

test("what waited while a webhook was disabled is retried as if it were new", async () => {
  const statuses = [500, 200];
  const fetch: GuardedFetch = async () => new Response(null, { status: statuses.shift() ?? 500 });
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.set({ disabled: true });
  await hook.queueOld(30 * DAY_MS, 80);
  await hook.set({ disabled: false });
  const latest = async () => (await hook.deliveries()).at(-1);
  await until(async () => (await latest())?.status !== "pending", "the end of the delivery");
  expect(await latest()).toMatchObject({ status: "delivered", attempts: 82 });
});

test("the deliveries of a conversation follow each other until one fails", async () => {
  const sent: (number | undefined)[] = [];
  const last = Promise.withResolvers<Response>();
  await using receiver = startReceiver(({ data: { at } }) => {
    sent.push(at?.seq);
    if (at?.seq !== 5) return new Response("ok");
    return sent.length > 5 ? last.promise : new Response(null, { status: 500 });
  });
  const fetch = createGuardedFetch({ allowPrivate: true });
  await using hook = await startWebhook(fetch, receiver.url);
  for (let seq = 0; seq < 40; seq++) await hook.emit();
  await receiver.has(6);
  // The failed one is sent again, and nothing that follows it before.
  expect(sent).toEqual([1, 2, 3, 4, 5, 5]);
  const logged = async () =>
    (await hook.deliveries(100)).toReversed().map(({ status, attempts }) => [status, attempts]);
  expect((await logged()).slice(0, 6)).toEqual([
    ["delivered", 1],
    ["delivered", 1],
    ["delivered", 1],
    ["delivered", 1],
    ["pending", 1],
    ["pending", 0],
  ]);
  last.resolve(new Response("ok"));
  while ((await logged()).filter(([status]) => status === "delivered").length < 40) {
    await Bun.sleep(20);
  }
  expect(sent.slice(6)).toEqual(Array.from({ length: 35 }, (_, place) => place + 6));
});

test("a webhook that is disabled and enabled during an attempt keeps the order", async () => {
  const sent: number[] = [];
  const otherIsSent = Promise.withResolvers<void>();
  const fetch: GuardedFetch = async (_, { body } = {}) => {
    const { conversation_id, seq } = JSON.parse(String(body)).data.at;
    if (conversation_id === "other") otherIsSent.resolve();
    else sent.push(seq);
    if (seq === 2) {
      await hook.set({ disabled: true });
      await hook.set({ disabled: false });
      // Once this is sent, lanes that are due were claimed.
      await hook.store.write((tx) => tx.queueDeliveries(deliveriesOf("other", [1])));
      await otherIsSent.promise;
    }
    return new Response("ok");
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.store.write((tx) => tx.queueDeliveries(deliveriesOf("chat", [1, 2, 3, 4])));
  await until(() => sent.includes(4), "the last delivery");
  expect(sent).toEqual([1, 2, 3, 4]);
});

test("a late 410 of a former address does not disable the webhook", async () => {
  const sent: string[] = [];
  const fetch: GuardedFetch = async (url) => {
    sent.push(String(url));
    if (url === NEW_URL) return new Response("ok");
    await hook.set({ url: NEW_URL });
    return new Response(null, { status: 410 });
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.store.write((tx) => tx.queueDeliveries(deliveriesOf("chat", [1])));
  await until(async () => (await hook.deliveries())[0]?.status === "delivered", "the delivery");
  expect(sent).toEqual(["https://example.com/hook", NEW_URL]);
  expect(await hook.shown()).toMatchObject({ url: NEW_URL, disabled: null });
});

test("what waits for a retry is sent to a new address at once", async () => {
  const sent: string[] = [];
  const fetch: GuardedFetch = async (url) => {
    sent.push(String(url));
    return new Response("ok");
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.queueOld(2 * DAY_MS, 50);
  await hook.set({ url: NEW_URL });
  await until(async () => (await hook.deliveries())[0]?.status === "delivered", "the delivery");
  expect(sent).toEqual([NEW_URL]);
});

test("webhooks whose receivers hang leave room for others", async () => {
  const HANGING_URL = "https://example.com/hanging";
  const hanging: ((answer: Response) => void)[] = [];
  const sent: unknown[] = [];
  const fetch: GuardedFetch = async (url, { signal } = {}) => {
    if (url === HANGING_URL) {
      const { promise, resolve, reject } = Promise.withResolvers<Response>();
      signal?.addEventListener("abort", () => reject(signal.reason));
      hanging.push(resolve);
      return promise;
    }
    sent.push(url);
    return new Response("ok");
  };
  const hooks = Array.from({ length: 8 }, (_, place) => `hanging ${place}`);
  const chats = Array.from({ length: 500 }, (_, place) => `chat ${place}`);
  await using hook = await startWebhook(fetch, "https://example.com/last");
  await hook.store.write(async (tx) => {
    for (const id of hooks) await tx.insertWebhook(hook.like(id, HANGING_URL));
    await tx.queueDeliveries(
      hooks.flatMap((id) => chats.flatMap((chat) => deliveriesOf(chat, [1], { id }))),
    );
  });
  await until(() => hanging.length === 64, "all attempts hang");
  await hook.store.write((tx) => tx.queueDeliveries(deliveriesOf("chat", [1])));
  for (const answer of hanging.splice(0)) answer(new Response(null, { status: 504 }));
  await until(() => sent.length === 1, "the delivery");
});

test("an attempt that cannot be stored at first is stored later, and not made again", async () => {
  const sent: unknown[] = [];
  const fetch: GuardedFetch = async (_, { body } = {}) => {
    sent.push(body);
    let failures = 3;
    const { note } = hook.store;
    hook.store.note = (unit) =>
      failures-- > 0 ? Promise.reject(new Unavailable("for a moment")) : note(unit);
    return new Response("ok");
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.emit();
  const status = async () => (await hook.deliveries()).at(-1)?.status;
  while ((await status()) !== "delivered") await Bun.sleep(20);
  expect(sent).toHaveLength(1);
});

test("an answer whose body breaks off counts by its status", async () => {
  using receiver = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      data: (socket) => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc");
        socket.end();
      },
    },
  });
  const fetch = createGuardedFetch({ allowPrivate: true });
  await using hook = await startWebhook(fetch, `http://127.0.0.1:${receiver.port}/`);
  for (let seq = 0; seq < 20; seq++) await hook.emit();
  const ended = async () =>
    (await hook.deliveries(100)).filter(({ status }) => status !== "pending");
  while ((await ended()).length < 20) await Bun.sleep(20);
  expect((await ended()).map(({ status, attempts }) => [status, attempts])).toEqual(
    Array.from({ length: 20 }, () => ["delivered", 1]),
  );
});

test("what a deleted webhook leaves behind is deleted soon", async () => {
  const fetch: GuardedFetch = async () => new Response(null, { status: 500 });
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  await hook.queueLanes(1100);
  await hook.store.write((tx) => tx.deleteWebhook("hook"));
  hook.wake();
  await until(async () => (await hook.deliveries()).length === 0, "no deliveries");
});

test("what was sent before a stop is not sent again", async () => {
  const isReached = Promise.withResolvers<void>();
  const fetch: GuardedFetch = (_, { body, signal } = {}) => {
    if (JSON.parse(String(body)).data.at.seq < 3) return Promise.resolve(new Response("ok"));
    isReached.resolve();
    return new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  };
  await using hook = await startWebhook(fetch, "https://example.com/hook");
  for (let seq = 0; seq < 5; seq++) await hook.emit();
  await isReached.promise;
  await until(async () => (await hook.deliveries()).length === 5, "all deliveries are queued");
  await hook.stopSender();
  const found = (await hook.deliveries()).toReversed();
  expect(found.map(({ status }) => status)).toEqual([
    "delivered",
    "delivered",
    "pending",
    "pending",
    "pending",
  ]);
  // The rest is due at once, for another node or the next start.
  expect(await hook.store.read((tx) => tx.dueWebhooks())).toEqual(["hook"]);
});

test("retries follow with exponential backoff and jitter, at most an hour apart", () => {
  expect([1, 2, 3, 4].map((attempts) => retryDelayMs(attempts, 1))).toEqual([
    1000, 2000, 4000, 8000,
  ]);
  expect(retryDelayMs(3, 0)).toBe(2000);
  expect(retryDelayMs(100, 1)).toBe(60 * 60 * 1000);
});

/**
 * Generates the load, in a separate process. Each scenario reads its input from a file and prints
 * its measurements as JSON.
 */
import { closeSync, fdatasync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  connectAll,
  cpuOf,
  cpuWithChildren,
  idOf,
  isEvent,
  isReply,
  lag,
  numberOf,
  percentile,
} from "./measure.ts";
import { startProvider } from "./provider.ts";
import { connect } from "./raw-socket.ts";
import { toolTurns } from "./tool-turns.ts";
import { storeFile, transfers } from "./transfers.ts";

const [scenario, file] = process.argv.slice(2);
const TIMEOUT_MS = 120_000;
setTimeout(() => {
  process.stderr.write(`${scenario} timed out\n`);
  process.exit(1);
}, TIMEOUT_MS).unref();

interface Load {
  /** One server, or several nodes over which the clients are spread. */
  url: string | string[];
  pid: number;
  /** Processes whose CPU is reported too, by name. */
  parts?: Record<string, number[]>;
  tokens: string[];
  /** Who sends where: an index of `tokens`, and a conversation. */
  senders: { place: number; conversation: string }[];
  messages: number;
  /** Messages sent before measuring begins, so that compiling the code is not counted. */
  warmup: number;
  /** Messages that each sender keeps in flight. */
  window: number;
  /** How many sockets receive each message. */
  receivers: number;
  /** The last of them in each conversation. */
  lastMembers: number[];
}

/** Every sender keeps its window full until all messages are acknowledged and delivered. */
async function load({ url, pid, tokens, senders, warmup, window, receivers, ...plan }: Load) {
  const partsCpu = () =>
    Object.entries(plan.parts ?? {}).map(
      ([name, pids]) => [name, pids.reduce((sum, each) => sum + cpuWithChildren(each), 0)] as const,
    );
  const messages = warmup + plan.messages;
  const sentAt = new Float64Array(messages);
  const acknowledged = new Float64Array(messages);
  const deliveredAt = new Float64Array(messages);
  let sent = 0;
  let replies = 0;
  let deliveries = 0;
  let started = 0;
  let cpu = 0;
  let busy = process.cpuUsage();
  let before = new Map<string, number>();
  const done = Promise.withResolvers<void>();
  // All windows use one server: a `client_msg_id` that was used before would create no message.
  const run = crypto.randomUUID().slice(0, 8);
  const content = "as long as the messages that people send each other mostly are, more or less";
  /** The sockets whose deliveries are timed: the last member of each conversation, who gets it last. */
  const timed = new Set(plan.lastMembers);
  const bySocket = new Map(senders.map((sender) => [sender.place, sender]));

  const sockets = await connectAll(url, tokens, (frame, place) => {
    if (isEvent(frame)) {
      deliveries++;
      if (timed.has(place)) {
        const index = numberOf(frame);
        deliveredAt[index] = performance.now() - (sentAt[index] as number);
      }
    } else if (isReply(frame)) {
      const index = idOf(frame);
      acknowledged[index] = performance.now() - (sentAt[index] as number);
      replies++;
      const sender = bySocket.get(place);
      if (sender && sent < messages) send(sender);
    } else {
      done.reject(new Error(`unexpected frame: ${frame.toString().slice(0, 200)}`));
    }
    if (replies === warmup && started === 0) {
      started = performance.now();
      busy = process.cpuUsage();
      cpu = cpuOf(pid);
      before = new Map(partsCpu());
    }
    if (replies === messages && deliveries === messages * receivers) done.resolve();
  });

  function send({ place, conversation }: Load["senders"][number]): void {
    const index = sent++;
    sentAt[index] = performance.now();
    sockets[place]?.send(
      `{"id":${index},"method":"messages.send","params":{"conversation_id":"${conversation}","content":"${content}","client_msg_id":"b${run}-${index}"}}`,
    );
  }

  for (let round = 0; round < window; round++) {
    for (const sender of senders) if (sent < messages) send(sender);
  }
  await done.promise;
  const seconds = (performance.now() - started) / 1000;
  const own = process.cpuUsage(busy);
  return {
    seconds,
    rate: plan.messages / seconds,
    busy: (own.user + own.system) / 1e6 / seconds,
    cpu_us: cpuOf(pid) - cpu,
    parts: Object.fromEntries(
      partsCpu().map(([name, now]) => [name, now - (before.get(name) ?? 0)]),
    ),
    messages: plan.messages,
    deliveries: plan.messages * receivers,
    ack_p50: percentile(acknowledged.subarray(warmup), 0.5),
    ack_p99: percentile(acknowledged.subarray(warmup), 0.99),
    delivered_p50: percentile(deliveredAt.subarray(warmup), 0.5),
    delivered_p99: percentile(deliveredAt.subarray(warmup), 0.99),
  };
}

/** Opens sockets and leaves them idle. */
async function idle({ url, tokens }: { url: string; tokens: string[] }) {
  const sockets = await connectAll(url, tokens, () => {});
  process.stdout.write(JSON.stringify({ open: sockets.length }));
  // The caller reads the server's memory while the sockets are open, then kills this process.
  process.stdout.write("\n");
  await new Promise(() => setInterval(() => {}, 1000));
}

interface Calls {
  url: string;
  pid: number;
  token: string;
  conversation: string;
  count: number;
}

/** The server's CPU per call of each kind, one call at a time. */
async function calls({ url, pid, token, conversation, count }: Calls) {
  let answered = () => {};
  const socket = await connect(url, token, (frame) => {
    if (!isEvent(frame)) answered();
  });
  const ask = (method: string, params: object) =>
    new Promise<void>((resolve) => {
      answered = resolve;
      socket.send(JSON.stringify({ id: 1, method, params }));
    });
  const measure = async (work: () => Promise<unknown>) => {
    for (let warm = 0; warm < count / 10; warm++) await work();
    const cpu = cpuOf(pid);
    for (let round = 0; round < count; round++) await work();
    return (cpuOf(pid) - cpu) / count;
  };
  const conversation_id = conversation;
  return {
    send: await measure(() => ask("messages.send", { conversation_id, content: "hello there" })),
    history: await measure(() => ask("messages.history", { conversation_id })),
    unread: await measure(() => ask("conversations.get", { conversation_id })),
    connect: await measure(async () => {
      const opened = await connect(url, token, () => {});
      opened.end();
    }),
  };
}

const SYNCS = 300;

/** How long the disk takes to sync one small append: the minimum for a stored message. */
async function sync({ folder }: { folder: string }) {
  const path = join(folder, "sync");
  const descriptor = openSync(path, "w");
  const page = Buffer.alloc(4096, 1);
  const times = new Float64Array(SYNCS);
  for (let round = 0; round < SYNCS; round++) {
    const started = performance.now();
    writeSync(descriptor, page);
    await new Promise<void>((resolve, reject) =>
      fdatasync(descriptor, (error) => (error ? reject(error) : resolve())),
    );
    times[round] = performance.now() - started;
  }
  closeSync(descriptor);
  rmSync(path);
  return { sync_p50: percentile(times, 0.5) };
}

interface Streams {
  url: string;
  pid: number;
  tokens: string[];
  conversations: string[];
  /** Port of the test provider; the server is configured with it. */
  providerPort: number;
  chunks: number;
  /** Time between two chunks of a stream. */
  paceMs: number;
}

/** Every person asks their agent, and all answers stream at the same time. */
async function streams({ url, pid, tokens, conversations, providerPort, chunks, paceMs }: Streams) {
  const testProvider = startProvider(providerPort, chunks, paceMs);
  let complete = 0;
  let deltas = 0;
  const first: number[] = [];
  const latencies: number[] = [];
  const done = Promise.withResolvers<void>();
  const streaming = new Set<string>();
  const sockets = await connectAll(url, tokens, (frame) => {
    const text = frame.toString();
    if (text.startsWith('{"method":"events.messageDelta"')) {
      deltas++;
      const { id, delta } = (JSON.parse(text) as { params: { id: string; delta: string } }).params;
      // Each chunk contains the time it was sent. The last chunk of a delta has waited the least.
      const sentAt = Number(delta.trim().split(" ").at(-1));
      const late = performance.timeOrigin + performance.now() - sentAt;
      (streaming.has(id) ? latencies : first).push(late);
      streaming.add(id);
    } else if (text.startsWith('{"method":"events.messageComplete"')) {
      if (!text.includes('"status":"complete"')) done.reject(new Error(text.slice(0, 400)));
      complete++;
      if (complete === conversations.length) done.resolve();
    }
  });
  await lag(url);
  const cpu = cpuOf(pid);
  const started = performance.now();
  for (const [place, conversation_id] of conversations.entries()) {
    const params = { conversation_id, content: "go on" };
    sockets[place]?.send(JSON.stringify({ id: 1, method: "messages.send", params }));
    // Spreads the questions: people do not ask at the same moment.
    await Bun.sleep(6);
  }
  await done.promise;
  const seconds = (performance.now() - started) / 1000;
  const result = {
    seconds,
    cpu_us: cpuOf(pid) - cpu,
    chunks: chunks * conversations.length,
    deltas,
    first_p50: percentile(Float64Array.from(first), 0.5),
    first_p99: percentile(Float64Array.from(first), 0.99),
    delta_p50: percentile(Float64Array.from(latencies), 0.5),
    delta_p99: percentile(Float64Array.from(latencies), 0.99),
    worst_lag_ms: (await lag(url)) * 1000,
  };
  testProvider.stop();
  return result;
}

interface Paced extends Pick<Load, "tokens" | "senders" | "messages" | "receivers"> {
  url: string;
  pid: number;
  perSecond: number;
  /** Port of a webhook's receiver, if every message is delivered to one. */
  hookPort?: number;
}

/** Sends messages at a fixed rate, whatever the server does, until everything has arrived. */
async function paced({ url, pid, tokens, senders, messages, perSecond, ...plan }: Paced) {
  const sentAt = new Float64Array(messages);
  const acknowledged = new Float64Array(messages);
  const delivered = new Float64Array(messages);
  const late = new Float64Array(messages);
  const run = crypto.randomUUID().slice(0, 8);
  const done = Promise.withResolvers<void>();
  const expected = messages * (1 + plan.receivers + (plan.hookPort ? 1 : 0));
  let arrived = 0;
  const arrive = () => {
    if (++arrived === expected) done.resolve();
  };
  const receiver = plan.hookPort && startHookReceiver(plan.hookPort, run, arrive);
  const sockets = await connectAll(url, tokens, (frame) => {
    const now = performance.now();
    if (isReply(frame)) {
      const index = idOf(frame);
      acknowledged[index] = now - (sentAt[index] as number);
    } else if (isEvent(frame)) {
      const index = numberOf(frame);
      delivered[index] = now - (sentAt[index] as number);
    } else {
      done.reject(new Error(`unexpected frame: ${frame.toString().slice(0, 200)}`));
    }
    arrive();
  });
  const cpu = cpuOf(pid);
  const started = performance.now();
  for (let index = 0; index < messages; index++) {
    const { place, conversation } = senders[index % senders.length] as Load["senders"][number];
    const due = started + (index * 1000) / perSecond;
    while (performance.now() < due) await Bun.sleep(1);
    sentAt[index] = performance.now();
    late[index] = (sentAt[index] as number) - due;
    const params = {
      conversation_id: conversation,
      content: "go on",
      client_msg_id: `b${run}-${index}`,
    };
    sockets[place]?.send(JSON.stringify({ id: index, method: "messages.send", params }));
  }
  await done.promise;
  if (receiver) void receiver.stop(true);
  return {
    seconds: (performance.now() - started) / 1000,
    cpu_us: cpuOf(pid) - cpu,
    ack_p50: percentile(acknowledged, 0.5),
    ack_p99: percentile(acknowledged, 0.99),
    delivered_p50: percentile(delivered, 0.5),
    late_p99: percentile(late, 0.99),
  };
}

/** Counts the messages of this run; a delivery may come twice. */
function startHookReceiver(port: number, run: string, arrive: () => void) {
  const seen = new Set<string>();
  return Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const id = new RegExp(`b${run}-\\d+`).exec(await request.text())?.[0];
      if (id && !seen.has(id)) {
        seen.add(id);
        arrive();
      }
      return new Response("ok");
    },
  });
}

interface Users {
  url: string;
  pid: number;
  key: string;
  token: string;
  conversation: string;
  /** The number of the first user. */
  from: number;
  count: number;
  batch: number;
}

const CALM_SENDS = 300;

/** Creates users, one call after the other, while somebody sends one message at a time. */
async function users({ url, pid, key, token, conversation, from, count, batch }: Users) {
  let answered = () => {};
  const socket = await connect(url, token, (frame) => {
    if (isReply(frame)) answered();
  });
  const sendWhile = async (goesOn: (sent: number) => boolean) => {
    const times: number[] = [];
    const params = { conversation_id: conversation, content: "go on" };
    while (goesOn(times.length)) {
      const started = performance.now();
      await new Promise<void>((resolve) => {
        answered = resolve;
        socket.send(JSON.stringify({ id: 1, method: "messages.send", params }));
      });
      times.push(performance.now() - started);
    }
    const sorted = Float64Array.from(times);
    return { p50: percentile(sorted, 0.5), p99: percentile(sorted, 0.99) };
  };
  const calm = await sendWhile((sent) => sent < CALM_SENDS);
  let isDone = false;
  const sending = sendWhile(() => !isDone);
  const cpu = cpuOf(pid);
  const started = performance.now();
  for (let first = from; first < from + count; first += batch) {
    await upsert(url, key, first, Math.min(batch, from + count - first));
  }
  const seconds = (performance.now() - started) / 1000;
  const cpu_us = cpuOf(pid) - cpu;
  isDone = true;
  return { seconds, cpu_us, calm, busy: await sending };
}

async function upsert(url: string, key: string, first: number, count: number): Promise<void> {
  const users = Array.from({ length: count }, (_, index) => ({
    external_id: `customer-${first + index}`,
    display_name: `Customer ${first + index}`,
    metadata: { plan: "gold" },
  }));
  const response = await fetch(`${url}/api/upsertUsers`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ users }),
  });
  if (!response.ok) throw new Error(`upsertUsers failed: ${await response.text()}`);
  await response.arrayBuffer();
}

const scenarios: Record<string, (input: never) => Promise<unknown>> = {
  load,
  idle,
  calls,
  sync,
  streams,
  tool_turns: toolTurns,
  paced,
  store_file: storeFile,
  transfers,
  users,
};
const run = scenarios[scenario ?? ""];
if (!run || !file) throw new Error(`unknown scenario: ${scenario}`);
process.stdout.write(JSON.stringify(await run((await Bun.file(file).json()) as never)));
process.exit(0);

#!/usr/bin/env bun
/**
 * Checks that the memory of a server stays constant while clients connect and send all the time:
 * `npm run soak:memory -- 60` runs for sixty minutes. Prints resident memory and heap once a minute,
 * and at the end their growth per minute in the second half of the run.
 */
import type { Subprocess } from "bun";
import { LIMITS, MAIN, print, temporaryFolder } from "./environment.ts";

const PEOPLE = 40;
const GROUP_SIZE = 8;
/** Messages that a client sends before it disconnects and connects again. */
const MESSAGES_PER_CONNECTION = 20;
const PAUSE_MS = 50;
const SAMPLE_MS = 10_000;
/** Less growth than this is within the noise of garbage collection. */
const FLAT_MB_PER_MINUTE = 0.5;

interface Sample {
  minute: number;
  rssMb: number;
  heapMb: number;
}

const minutes = Number(process.argv[2] ?? 15);
if (!(minutes > 0)) throw new Error("give the duration in minutes");
using folder = temporaryFolder();
const { url, server } = await startServer(folder.path);
const samples = await run(url, minutes);
server.kill();
await server.exited;
const isFlat = reportGrowth(samples);
process.exitCode = isFlat ? 0 : 1;

async function startServer(data: string): Promise<{ url: string; server: Subprocess }> {
  const child = Bun.spawn([process.execPath, MAIN], {
    env: {
      PATH: process.env.PATH ?? "",
      PORT: "0",
      PARLEY_DATA: data,
      PARLEY_LIMITS: LIMITS,
      PARLEY_LOG: "warn",
    },
    stdout: "pipe",
    stderr: "inherit",
  });
  let output = "";
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk);
    const found = /listens on (\S+)/.exec(output)?.[1];
    if (found) return { url: found, server: child };
  }
  throw new Error(`the server did not start: ${output}`);
}

async function run(base: string, duration: number): Promise<Sample[]> {
  const people = await seed(base);
  const began = performance.now();
  const end = began + duration * 60_000;
  let sent = 0;
  let connections = 0;
  const clients = people.map(async ({ token, chat }) => {
    while (performance.now() < end) {
      connections++;
      const messages = await sendOverOneConnection(base, token, chat, end);
      sent += messages;
    }
  });
  const taken: Sample[] = [];
  print("minute   RSS MB   heap MB   messages   connections");
  for (let next = SAMPLE_MS; began + next <= end; next += SAMPLE_MS) {
    await Bun.sleep(began + next - performance.now());
    const sample = { minute: next / 60_000, ...(await measure(base)) };
    taken.push(sample);
    if (next % 60_000 !== 0) continue;
    const figures = [sample.minute, sample.rssMb.toFixed(1), sample.heapMb.toFixed(1)];
    print([...figures, sent, connections].map((figure) => `${figure}`.padStart(8)).join(" "));
  }
  await Promise.all(clients);
  return taken;
}

async function seed(base: string): Promise<{ token: string; chat: string }[]> {
  const people = await Promise.all(
    Array.from({ length: PEOPLE }, async (_, n) => {
      const username = `soak${n}`;
      const { access_token } = await call(base, "signUp", { username, password: "soaking memory" });
      return { username, token: String(access_token) };
    }),
  );
  const seats: { token: string; chat: string }[] = [];
  for (let from = 0; from < PEOPLE; from += GROUP_SIZE) {
    const members = people.slice(from, from + GROUP_SIZE);
    const usernames = members.slice(1).map(({ username }) => username);
    const { id } = await call(base, "startChat", { usernames, kind: "group" }, members[0]?.token);
    seats.push(...members.map(({ token }) => ({ token, chat: String(id) })));
  }
  return seats;
}

async function call(base: string, name: string, input: object, token?: string) {
  const response = await fetch(`${base}/api/${name}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(input),
  });
  const { ok, result, description } = (await response.json()) as {
    ok: boolean;
    result: Record<string, unknown>;
    description?: string;
  };
  if (!ok) throw new Error(`${name}: ${description}`);
  return result;
}

/** Connects, sends messages one at a time, and disconnects. Returns how many it sent. */
function sendOverOneConnection(
  base: string,
  token: string,
  chat: string,
  end: number,
): Promise<number> {
  const socket = new WebSocket(`${base.replace("http", "ws")}/api/ws?token=${token}`);
  let sent = 0;
  const send = () => {
    const params = { conversation_id: chat, content: `message ${sent} ${crypto.randomUUID()}` };
    socket.send(JSON.stringify({ method: "messages.send", params, id: ++sent }));
  };
  return new Promise((resolve) => {
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(String(data)) as { method?: string; id?: number };
      if (frame.method === "events.hello") send();
      if (frame.id !== sent) return;
      if (sent === MESSAGES_PER_CONNECTION || performance.now() > end) socket.close();
      else setTimeout(send, PAUSE_MS);
    };
    socket.onclose = () => resolve(sent);
  });
}

async function measure(base: string): Promise<Omit<Sample, "minute">> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1]) / 1e6;
  return {
    rssMb: megabytes("process_resident_memory_bytes"),
    heapMb: megabytes("process_heap_bytes"),
  };
}

/** Prints the growth in the second half, when caches are full. Returns whether memory stays constant. */
function reportGrowth(all: Sample[]): boolean {
  const half = all.filter(({ minute }) => minute > minutes / 2);
  const rss = slope(half.map(({ minute, rssMb }) => [minute, rssMb]));
  const heap = slope(half.map(({ minute, heapMb }) => [minute, heapMb]));
  print(`Second half: RSS ${signed(rss)} MB a minute, heap ${signed(heap)} MB a minute.`);
  const flat = rss < FLAT_MB_PER_MINUTE;
  print(flat ? "Flat." : `Not flat: more than ${FLAT_MB_PER_MINUTE} MB a minute.`);
  return flat;
}

function signed(value: number): string {
  return `${value < 0 ? "" : "+"}${value.toFixed(2)}`;
}

/** The slope of the line that fits the points best. */
function slope(points: [x: number, y: number][]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(([each]) => each)), mean(points.map(([, each]) => each))];
  const over = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0);
  return over / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0);
}

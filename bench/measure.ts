/** What the scenarios of the generator share: clients, and measurements of the server. */
import { readdirSync, readFileSync } from "node:fs";
import { connect, type RawSocket } from "./raw-socket.ts";

/**
 * The CPU time of a process so far, in microseconds. Sums its threads, because the kernel counts the
 * time of a thread in nanoseconds and that of a process in ticks of ten milliseconds.
 */
export function cpuOf(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [running] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    nanoseconds += Number(running);
  }
  return nanoseconds / 1000;
}

/** The same for a process and its children: PostgreSQL has a process for each connection. */
export function cpuWithChildren(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  const pids = [pid, ...(children === "" ? [] : children.split(" ").map(Number))];
  return pids.reduce((sum, each) => sum + cpuOf(each), 0);
}

export async function connectAll(
  urls: string | readonly string[],
  tokens: readonly string[],
  onFrame: (frame: Buffer, place: number) => void,
): Promise<RawSocket[]> {
  const all = [urls].flat();
  const urlOf = (place: number) => all[place % all.length] as string;
  const sockets: RawSocket[] = [];
  for (let from = 0; from < tokens.length; from += 100) {
    const some = tokens.slice(from, from + 100);
    sockets.push(
      ...(await Promise.all(
        some.map((token, index) =>
          connect(urlOf(from + index), token, (frame) => onFrame(frame, from + index)),
        ),
      )),
    );
  }
  return sockets;
}

const [REPLY, EVENT, ZERO] = [0x6f, 0x6d, 0x30];

/** Whether a frame is a successful reply: it begins with `{"ok":true`. Requests have no `ok` of their own. */
export const isReply = (frame: Buffer) => frame[2] === REPLY && frame[6] === 0x74;
/** Whether a frame is an event: it begins with `{"method"`. */
export const isEvent = (frame: Buffer) => frame[2] === EVENT;

/** The id of a reply, which stands at its end. */
export function idOf(reply: Buffer): number {
  let [id, place] = [0, 1];
  for (let at = reply.length - 2; isDigit(reply[at]); at--, place *= 10) {
    id += place * ((reply[at] as number) - ZERO);
  }
  return id;
}

const CLIENT_MSG_ID = Buffer.from('"client_msg_id":"b');

/** The number at the end of the `client_msg_id` of a message. */
export function numberOf(event: Buffer): number {
  let at = event.indexOf(CLIENT_MSG_ID) + CLIENT_MSG_ID.length;
  while (event[at - 1] !== 0x2d) at++;
  let number = 0;
  for (; isDigit(event[at]); at++) number = 10 * number + (event[at] as number) - ZERO;
  return number;
}

const isDigit = (byte: number | undefined) =>
  byte !== undefined && byte >= ZERO && byte < ZERO + 10;

export function percentile(values: Float64Array, share: number): number {
  const sorted = values.slice().sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The longest delay of the server's event loop since the last call. */
export async function lag(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^parley_event_loop_lag_seconds (.+)$/m.exec(text)?.[1] ?? 0);
}

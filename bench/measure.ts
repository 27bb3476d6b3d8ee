/** What the scenarios of the generator share: clients, and measurements of the server. */
import { readdirSync, readFileSync } from "node:fs";

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

export function connect(
  url: string,
  token: string,
  onFrame: (text: string) => void,
): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/api/ws?token=${token}`);
    let isOpen = false;
    socket.onmessage = ({ data }) => {
      if (isOpen) return onFrame(data as string);
      // The first frame is `events.hello`.
      isOpen = true;
      resolve(socket);
    };
    socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`));
  });
}

export async function connectAll(
  urls: string | readonly string[],
  tokens: readonly string[],
  onFrame: (text: string, place: number) => void,
): Promise<WebSocket[]> {
  const all = [urls].flat();
  const urlOf = (place: number) => all[place % all.length] as string;
  const sockets: WebSocket[] = [];
  for (let from = 0; from < tokens.length; from += 100) {
    const some = tokens.slice(from, from + 100);
    sockets.push(
      ...(await Promise.all(
        some.map((token, index) =>
          connect(urlOf(from + index), token, (text) => onFrame(text, from + index)),
        ),
      )),
    );
  }
  return sockets;
}

export function percentile(values: Float64Array, share: number): number {
  const sorted = values.slice().sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The longest delay of the server's event loop since the last call. */
export async function lag(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^parley_event_loop_lag_seconds (.+)$/m.exec(text)?.[1] ?? 0);
}

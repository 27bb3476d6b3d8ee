import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Balancer extends AsyncDisposable {
  readonly url: string;
}

/** A TCP load balancer: each connection goes to the next target that is up. */
export async function startBalancer(targets: () => readonly string[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let next = 0;

  const listener = createServer((client) => {
    const up = targets();
    const target = up[next++ % up.length];
    if (target === undefined) {
      client.destroy();
      return;
    }
    const { hostname, port } = new URL(target);
    join(client, connect(Number(port), hostname));
  });

  /** Pipes two sockets into each other. When one closes, so does the other. */
  function join(one: Socket, other: Socket): void {
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  }

  await new Promise<void>((ready) => listener.listen(0, "127.0.0.1", ready));
  const { port } = listener.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => listener.close(closed));
    },
  };
}

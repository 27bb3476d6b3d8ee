import { connect, createServer, type Socket } from "node:net";

type Direction = "toServer" | "toClient";

interface Link {
  client: Socket;
  server: Socket;
  passed: Record<Direction, number>;
}

/** A TCP proxy that can delay, drop or cut connections at any byte. */
export class FaultyProxy implements AsyncDisposable {
  private readonly links = new Set<Link>();
  private target: URL;
  private readonly listener = createServer((client) => this.accept(client));
  private isRefusing = false;
  private isSilent: (accepted: number) => boolean = () => false;
  private readonly silent = new Set<Socket>();
  private stalled: readonly Direction[] = [];
  private delayMs = () => 0;
  private limits: { direction: Direction; bytes: number }[] = [];
  /** The number of connections accepted so far. */
  accepted = 0;

  private constructor(target: string) {
    this.target = new URL(target);
  }

  static async to(target: string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    await new Promise<void>((ready) => proxy.listener.listen(0, "127.0.0.1", ready));
    return proxy;
  }

  get url(): string {
    const address = this.listener.address();
    if (address === null || typeof address === "string") throw new Error("not listening");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Cuts all open connections. */
  cut(): void {
    for (const link of this.links) this.end(link);
    for (const client of this.silent) client.destroy();
  }

  /** Refuses new connections; open ones stay. */
  refuse(isRefusing: boolean): void {
    this.isRefusing = isRefusing;
  }

  /** Accepts these new connections, by their number, and never answers them. */
  silence(isSilent: (accepted: number) => boolean): void {
    this.isSilent = isSilent;
  }

  /** Silently drops all bytes in these directions; without arguments, in none. */
  stall(...directions: Direction[]): void {
    this.stalled = directions;
  }

  /** New connections go to another server. */
  retarget(target: string): void {
    this.target = new URL(target);
  }

  /** Delays each chunk. */
  delay(ms: () => number): void {
    this.delayMs = ms;
  }

  /** Cuts the first connection that forwards this number of further bytes in a direction, at that byte. */
  cutAfter(bytes: number, direction: Direction): void {
    this.limits.push({ bytes, direction });
    for (const link of this.links) link.passed = { toServer: 0, toClient: 0 };
  }

  /** Forwards everything again. */
  reset(): void {
    this.isRefusing = false;
    this.isSilent = () => false;
    this.stalled = [];
    this.limits = [];
    this.delayMs = () => 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((closed) => this.listener.close(closed));
  }

  private accept(client: Socket): void {
    if (this.isRefusing) {
      client.destroy();
      return;
    }
    this.accepted++;
    if (this.isSilent(this.accepted)) {
      this.silent.add(client);
      client.on("error", () => {});
      client.on("close", () => this.silent.delete(client));
      return;
    }
    const server = connect(Number(this.target.port), this.target.hostname);
    const link: Link = { client, server, passed: { toServer: 0, toClient: 0 } };
    this.links.add(link);
    this.forward(link, client, server, "toServer");
    this.forward(link, server, client, "toClient");
  }

  private forward(link: Link, from: Socket, to: Socket, direction: Direction): void {
    let last = Promise.resolve();
    from.setNoDelay(true);
    from.on("data", (chunk: Buffer) => {
      if (this.stalled.includes(direction)) return;
      const ms = this.delayMs();
      last = last.then(async () => {
        if (ms > 0) await Bun.sleep(ms);
        this.pass(link, to, chunk, direction);
      });
    });
    const end = () => void last.then(() => this.end(link));
    from.on("error", end);
    from.on("close", end);
  }

  private pass(link: Link, to: Socket, chunk: Buffer, direction: Direction): void {
    const limit = this.limits.find((each) => each.direction === direction);
    const room = limit ? limit.bytes - link.passed[direction] : Number.POSITIVE_INFINITY;
    link.passed[direction] += chunk.length;
    if (to.writable) to.write(chunk.subarray(0, Math.max(0, room)));
    if (chunk.length < room) return;
    this.limits = this.limits.filter((each) => each !== limit);
    // Lets the bytes up to the cut arrive first.
    to.end(() => this.end(link));
  }

  private end(link: Link): void {
    this.links.delete(link);
    link.client.destroy();
    link.server.destroy();
  }
}

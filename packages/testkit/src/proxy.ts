import { connect, createServer, type Socket } from "node:net";

type Direction = "toServer" | "toClient";

interface Line {
  client: Socket;
  server: Socket;
  passed: Record<Direction, number>;
}

/** A line between clients and a server that can be slow, dead or cut at any byte. */
export class FaultyLine implements AsyncDisposable {
  private readonly lines = new Set<Line>();
  private target: URL;
  private readonly listener = createServer((client) => this.accept(client));
  private isRefusing = false;
  private stalled: readonly Direction[] = [];
  private delayMs = () => 0;
  private limits: { direction: Direction; bytes: number }[] = [];
  /** How many connections were made so far. */
  accepted = 0;

  private constructor(target: string) {
    this.target = new URL(target);
  }

  static async to(target: string): Promise<FaultyLine> {
    const proxy = new FaultyLine(target);
    await new Promise<void>((ready) => proxy.listener.listen(0, "127.0.0.1", ready));
    return proxy;
  }

  get url(): string {
    const address = this.listener.address();
    if (address === null || typeof address === "string") throw new Error("not listening");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Cuts every connection there is. */
  cut(): void {
    for (const line of this.lines) this.end(line);
  }

  /** From now on nobody gets through; those who are through stay. */
  refuse(isRefusing: boolean): void {
    this.isRefusing = isRefusing;
  }

  /** From now on everything sent that way vanishes, and nobody is told. */
  stall(...directions: Direction[]): void {
    this.stalled = directions;
  }

  /** New connections lead there, as after a restart. */
  leadTo(target: string): void {
    this.target = new URL(target);
  }

  /** How long each chunk is held back. */
  delay(ms: () => number): void {
    this.delayMs = ms;
  }

  /** Once so many bytes have gone that way on one connection from now on, it is cut right there. */
  cutAfter(bytes: number, direction: Direction): void {
    this.limits.push({ bytes, direction });
    for (const line of this.lines) line.passed = { toServer: 0, toClient: 0 };
  }

  /** Lets everything through again. */
  calm(): void {
    this.isRefusing = false;
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
    const server = connect(Number(this.target.port), this.target.hostname);
    const line: Line = { client, server, passed: { toServer: 0, toClient: 0 } };
    this.lines.add(line);
    this.forward(line, client, server, "toServer");
    this.forward(line, server, client, "toClient");
  }

  private forward(line: Line, from: Socket, to: Socket, direction: Direction): void {
    let last = Promise.resolve();
    from.setNoDelay(true);
    from.on("data", (chunk: Buffer) => {
      if (this.stalled.includes(direction)) return;
      const ms = this.delayMs();
      last = last.then(async () => {
        if (ms > 0) await Bun.sleep(ms);
        this.pass(line, to, chunk, direction);
      });
    });
    const end = () => void last.then(() => this.end(line));
    from.on("error", end);
    from.on("close", end);
  }

  private pass(line: Line, to: Socket, chunk: Buffer, direction: Direction): void {
    const limit = this.limits.find((each) => each.direction === direction);
    const room = limit ? limit.bytes - line.passed[direction] : Number.POSITIVE_INFINITY;
    line.passed[direction] += chunk.length;
    if (to.writable) to.write(chunk.subarray(0, Math.max(0, room)));
    if (chunk.length < room) return;
    this.limits = this.limits.filter((each) => each !== limit);
    // What was written is to arrive; then the line is dead both ways.
    to.end(() => this.end(line));
  }

  private end(line: Line): void {
    this.lines.delete(line);
    line.client.destroy();
    line.server.destroy();
  }
}

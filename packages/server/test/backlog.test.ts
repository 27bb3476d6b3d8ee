import { describe, expect, test } from "bun:test";
import { createBacklog, type Reader } from "../src/realtime/backlog.ts";

const limits = { backlog_bytes: 1000, backlog_total_bytes: 10_000 };

/** A socket whose client reads nothing, with what happened to it. */
class StalledReader implements Reader {
  end: "closed" | "terminated" | null = null;
  bytes: number;
  replies: number;

  constructor(bytes = 0, replies = 0) {
    this.bytes = bytes;
    this.replies = replies;
  }
  buffered = () => this.bytes;
  unsent = () => this.bytes + this.replies;
  closeSlow(): void {
    this.end = "closed";
  }
  terminate(): void {
    this.end = "terminated";
  }
}

function backlogOf(...readers: StalledReader[]) {
  const closed: [limit: string, bytes: number][] = [];
  let scans = 0;
  const open = () => {
    scans++;
    return readers.filter(({ end }) => end === null);
  };
  const unsent = createBacklog(limits, open, (limit, bytes) => closed.push([limit, bytes]));
  /** Sends a frame to every socket, and lets the scan that it causes run. */
  const send = async (bytes: number) => {
    for (const reader of open()) reader.bytes += bytes;
    scans = 0;
    unsent.sent(bytes, readers.length);
    await new Promise((resolve) => setImmediate(resolve));
    return scans;
  };
  return { unsent, closed, send };
}

describe("one socket", () => {
  test("is closed with a code once more than backlog_bytes are buffered", async () => {
    const slow = new StalledReader();
    const { send, closed } = backlogOf(slow);
    for (let bytes = 0; bytes < 1000; bytes += 100) await send(100);
    expect(slow.end).toBeNull();
    await send(200);
    expect(slow.end).toBe("closed");
    expect(closed).toEqual([["backlog_bytes", 1200]]);
  });

  test("is not closed for replies that wait to be sent", async () => {
    const calling = new StalledReader(500, 5000);
    const { send } = backlogOf(calling);
    await send(400);
    await send(50);
    expect(calling.end).toBeNull();
  });

  test("causes a scan only after an eighth of its limit was sent", async () => {
    const slow = new StalledReader(990);
    const { send } = backlogOf(slow);
    await send(1);
    slow.bytes = 990;
    let scans = 0;
    for (let sent = 0; sent < 1000; sent += 5) {
      scans += await send(5);
      slow.bytes = 990;
    }
    expect(scans).toBeWithin(1, 9);
  });
});

describe("all sockets together", () => {
  const settle = () => new Promise((resolve) => setImmediate(resolve));

  test("have the furthest behind terminated while they are above backlog_total_bytes", async () => {
    const furthest = new StalledReader(100, 8000);
    const further = new StalledReader(100, 3000);
    const reading = new StalledReader();
    const { unsent, closed } = backlogOf(further, furthest, reading);
    unsent.sent(10_001);
    await settle();
    expect([furthest.end, further.end, reading.end]).toEqual(["terminated", null, null]);
    expect(closed).toEqual([["backlog_total_bytes", 8100]]);
  });

  test("count sockets that are closing, and have no more than a quarter for them", async () => {
    const slow = [1200, 1200, 1200].map((bytes) => new StalledReader(bytes));
    const { unsent } = backlogOf(...slow);
    unsent.sent(1200, 3);
    await settle();
    expect(slow.map(({ end }) => end)).toEqual(["closed", "closed", "terminated"]);
    expect(unsent.total()).toBe(2400);
  });
});

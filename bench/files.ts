import { generatePaced, type PacedResult, type Product, startProduct } from "./backend.ts";
import { FLOOR, temporaryFolder, WINDOWS } from "./environment.ts";
import { generate, startPinned } from "./process.ts";
import type { Measurement } from "./report.ts";
import type { Seed } from "./seed.ts";

const TRANSFERS = 100;
/** Each way and transfer: together 26 MB a second in each direction. */
const BYTES_PER_SECOND = 262_144;
const DOWNLOADED_BYTES = 25 * 1024 * 1024;
/** A picture of a phone. It takes four seconds, so that 25 uploads end each second. */
const UPLOADED_BYTES = 1024 * 1024;
/** All uploads have begun after the time that one takes. */
const LEAD_SECONDS = 4;
/** Longer than a window of messages takes. */
const SECONDS = 4;
/** The transfers share a core with the generator that times the messages, and give way to it. */
const LOWER_PRIORITY = 5;

interface Transferred {
  uploaded: number;
  downloaded: number;
  stored: number;
}

type Measured = Pick<Product, "server" | "made">;

/** The windows of one server. */
interface Windows {
  readonly calm: PacedResult[];
  readonly busy: PacedResult[];
  readonly moved: Transferred[];
}

/** Messages at a fixed rate, while a hundred uploads and a hundred downloads run, and without them. */
export async function files(): Promise<Measurement[]> {
  await using product = await startProduct();
  await using floor = await startFileFloor(product.made);
  const servers = await Promise.all(
    [product, floor].map(async (server) => ({
      server,
      file_id: (await storeFile(server)).file_id,
      windows: { calm: [], busy: [], moved: [] } as Windows,
    })),
  );
  // The first window is a warm-up.
  for (let window = 0; window <= WINDOWS; window++) {
    for (const { server, file_id, windows } of servers) {
      const calm = await generatePaced(server);
      const transfers = generate<Transferred>("transfers", plan(server, file_id), LOWER_PRIORITY);
      await Bun.sleep(LEAD_SECONDS * 1000);
      const busy = await generatePaced(server);
      const moved = await transfers;
      if (window === 0) continue;
      windows.calm.push(calm);
      windows.busy.push(busy);
      windows.moved.push(moved);
    }
  }
  const transfers = `${TRANSFERS} uploads and ${TRANSFERS} downloads, and without them`;
  const [parley, bare] = servers.map(({ windows }) => windows) as [Windows, Windows];
  return [
    ...rows(transfers, parley, 1.2),
    ...rows(`${transfers}: a minimal server in place of Parley`, bare),
  ];
}

function rows(scenario: string, { busy, calm, moved }: Windows, goal?: number): Measurement[] {
  const row = (metric: string, value: (result: PacedResult) => number): Measurement => ({
    scenario,
    metric,
    unit: "ms",
    parley: busy.map(value),
    floor: calm.map(value),
  });
  const rate = (metric: string, value: (each: Transferred) => number): Measurement => ({
    scenario,
    metric,
    unit: "MB/s",
    parley: moved.map((each) => value(each) / SECONDS / 1e6),
  });
  return [
    row("acknowledged p50", ({ ack_p50 }) => ack_p50),
    {
      ...row("acknowledged p99", ({ ack_p99 }) => ack_p99),
      ...(goal !== undefined && { goal }),
    },
    row("delivered p50", ({ delivered_p50 }) => delivered_p50),
    row("delay of the generator p99", ({ late_p99 }) => late_p99),
    rate("uploaded", ({ uploaded }) => uploaded),
    rate("downloaded", ({ downloaded }) => downloaded),
    { ...rate("uploads ended", ({ stored }) => stored * 1e6), unit: "1/s" },
  ];
}

/** The floor with files, for the same people and conversations. */
async function startFileFloor(made: Seed): Promise<Measured & AsyncDisposable> {
  const folder = temporaryFolder();
  const subscriptions = Object.fromEntries(
    made.tokens.map((token, place) => [token, [made.conversations[Math.floor(place / 2)]]]),
  );
  const server = await startPinned(FLOOR, {
    FLOOR: JSON.stringify({ subscriptions, folder: folder.path }),
  });
  return {
    server,
    made,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

const person = ({ server, made }: Measured) => ({
  url: server.url,
  token: made.tokens[0] ?? "",
  conversation: made.conversations[0] ?? "",
});

const storeFile = (server: Measured) =>
  generate<{ file_id: string }>("store_file", { ...person(server), size: DOWNLOADED_BYTES });

const plan = (server: Measured, file_id: string) => ({
  ...person(server),
  file_id,
  size: DOWNLOADED_BYTES,
  transfers: TRANSFERS,
  bytesPerSecond: BYTES_PER_SECOND,
  uploadBytes: UPLOADED_BYTES,
  leadSeconds: LEAD_SECONDS,
  seconds: SECONDS,
});

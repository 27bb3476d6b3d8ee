import { generatePaced, type PacedResult, type Product, startProduct } from "./backend.ts";
import { WINDOWS } from "./environment.ts";
import { generate } from "./process.ts";
import type { Measurement } from "./report.ts";

const TRANSFERS = 100;
/** Each way and transfer: together 25 MB a second in each direction. */
const BYTES_PER_SECOND = 262_144;
const FILE_BYTES = 25 * 1024 * 1024;
/** Longer than a window of messages takes. */
const SECONDS = 8;

interface Transferred {
  uploaded: number;
  downloaded: number;
}

/** Messages at a fixed rate, while a hundred uploads and a hundred downloads run, and without them. */
export async function files(): Promise<Measurement[]> {
  await using product = await startProduct();
  const stored = await storeFile(product);
  const calm: PacedResult[] = [];
  const busy: PacedResult[] = [];
  const moved: Transferred[] = [];
  // The first window is a warm-up.
  for (let window = 0; window <= WINDOWS; window++) {
    const without = await generatePaced(product);
    const transfers = generate<Transferred>("transfers", await plan(product, stored));
    const beside = await generatePaced(product);
    const transferred = await transfers;
    if (window === 0) continue;
    calm.push(without);
    busy.push(beside);
    moved.push(transferred);
  }
  return rows(busy, calm, moved);
}

function rows(
  busy: readonly PacedResult[],
  calm: readonly PacedResult[],
  moved: readonly Transferred[],
): Measurement[] {
  const scenario = `${TRANSFERS} uploads and ${TRANSFERS} downloads, and without them`;
  const rate = (bytes: (each: Transferred) => number) =>
    moved.map((each) => bytes(each) / SECONDS / 1e6);
  const row = (metric: string, value: (result: PacedResult) => number, goal?: number) => ({
    scenario,
    metric,
    unit: "ms",
    parley: busy.map(value),
    floor: calm.map(value),
    ...(goal !== undefined && { goal }),
  });
  return [
    row("acknowledged p50", ({ ack_p50 }) => ack_p50),
    row("acknowledged p99", ({ ack_p99 }) => ack_p99, 1.2),
    row("delivered p50", ({ delivered_p50 }) => delivered_p50),
    { scenario, metric: "uploaded", unit: "MB/s", parley: rate(({ uploaded }) => uploaded) },
    { scenario, metric: "downloaded", unit: "MB/s", parley: rate(({ downloaded }) => downloaded) },
  ];
}

const person = ({ server, made }: Product) => ({
  url: server.url,
  token: made.tokens[0] ?? "",
  conversation: made.conversations[0] ?? "",
});

/** The id of a file of 25 MiB. */
const storeFile = (product: Product) =>
  generate<{ file_id: string }>("store_file", { ...person(product), size: FILE_BYTES });

const plan = (product: Product, { file_id }: { file_id: string }) => ({
  ...person(product),
  file_id,
  transfers: TRANSFERS,
  bytesPerSecond: BYTES_PER_SECOND,
  size: FILE_BYTES,
  seconds: SECONDS,
});

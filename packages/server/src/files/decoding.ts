import { availableParallelism } from "node:os";
import { unavailable } from "../rules/failure.ts";
import { createFairQueue } from "../security/fair-queue.ts";

/**
 * Pictures are decoded on the thread pool that also reads and writes files, so one thread stays free. A
 * picture of 50 million pixels takes 200 MB meanwhile, so there are never many.
 */
const DECODED_AT_ONCE = Math.min(2, Math.max(1, availableParallelism() - 1));
/** Beyond it pictures are refused with `unavailable`. */
const MAX_WAITING = 200;

/** What work on a picture takes besides its pixels, and on one whose size is not known. */
const LEAST_PIXELS = 1_000_000;

const inTurn = createFairQueue({
  running: DECODED_AT_ONCE,
  waiting: MAX_WAITING,
  full: () => unavailable("too many pictures are being processed", 2),
});

/**
 * Runs all work of this process that decodes or encodes pictures. The key is the person whose picture
 * it is, so that many or large pictures of one person do not hold up the others.
 */
export const decodeInTurn = <Result>(
  key: string,
  task: () => Promise<Result>,
  signal?: AbortSignal,
  pixels = 0,
): Promise<Result> => inTurn(key, task, signal, LEAST_PIXELS + pixels);

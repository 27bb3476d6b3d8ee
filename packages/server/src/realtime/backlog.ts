import type { Client } from "./hub.ts";

type Reader = Pick<Client, "backlog" | "cutOff">;

/** The unsent bytes of all sockets together. */
export interface Backlog {
  /** Counts bytes that were handed to sockets. */
  sent(bytes: number): void;
  total(): number;
}

/** How much of the limit is left once sockets were cut off, so that it is not reached again at once. */
const LEFT_SHARE = 0.75;

/**
 * Keeps the unsent bytes of all sockets below a limit: beyond it those that are furthest behind are
 * cut off first. Adding up all sockets takes time, so it is done only when so much was sent since the
 * last time that the limit may have been reached.
 */
export function backlog(
  limit: number,
  readers: () => Iterable<Reader>,
  onCutOff: (bytes: number) => void,
): Backlog {
  /** No less than what is unsent. */
  let bound = 0;
  let isScheduled = false;

  function enforce(): void {
    isScheduled = false;
    const slow = [...readers()]
      .map((reader) => ({ reader, bytes: reader.backlog() }))
      .filter(({ bytes }) => bytes > 0)
      .sort((one, other) => other.bytes - one.bytes);
    bound = slow.reduce((sum, { bytes }) => sum + bytes, 0);
    if (bound <= limit) return;
    for (const { reader, bytes } of slow) {
      if (bound <= limit * LEFT_SHARE) return;
      bound -= bytes;
      reader.cutOff();
      onCutOff(bytes);
    }
  }

  return {
    sent(bytes) {
      bound += bytes;
      if (bound <= limit || isScheduled) return;
      isScheduled = true;
      // What is published reaches the sockets at the end of this turn of the event loop.
      setImmediate(enforce);
    },
    total() {
      let sum = 0;
      for (const reader of readers()) sum += reader.backlog();
      return sum;
    },
  };
}

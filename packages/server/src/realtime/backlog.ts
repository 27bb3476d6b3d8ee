/** A socket, or the answers over HTTP of one caller, whose client may read more slowly than it is sent to. */
export interface Reader {
  /** Bytes in the send buffer of the socket. */
  buffered(): number;
  /** `buffered`, plus the replies that wait for room in the buffer. */
  unsent(): number;
  /** Closes the socket with code 4408. The client reads what is buffered first. */
  closeSlow(): void;
  /** Drops the connection and what is buffered. The client sees code 1006. */
  terminate(): void;
}

/** Limits on bytes that clients have not read; named as in the settings. */
export interface BacklogLimits {
  /** Buffered bytes of one socket. */
  backlog_bytes: number;
  /** Unsent bytes of all sockets together. */
  backlog_total_bytes: number;
}

export type Backlog = ReturnType<typeof createBacklog>;

/** The share of the total that remains after sockets are closed, so that it is not reached again at once. */
const REMAINING_SHARE = 0.75;
/** The least share of `backlog_bytes` that is sent between two scans: a scan visits every socket. */
const SCAN_SHARE = 1 / 8;
/** Bun keeps the buffer of a closed socket for up to 20 s while its client does not read. */
const CLOSING_MS = 20_000;
/** The share of the total for the buffers of closing sockets; beyond it, sockets are terminated instead. */
const CLOSING_SHARE = 0.25;

/**
 * Closes the sockets of clients that do not read: those above the limit of one socket, and those
 * furthest behind while all together are above the total. Sockets do not report how far behind they
 * are, so they are scanned once enough was sent that a limit may have been reached.
 */
export function createBacklog(
  limits: BacklogLimits,
  readers: () => Iterable<Reader>,
  onClose: (limit: keyof BacklogLimits, bytes: number) => void,
) {
  /** Upper bounds of the unsent bytes of all sockets, and of the buffered bytes of any one. */
  let total = 0;
  let longest = 0;
  /** Bytes in the buffers of sockets that are closing. */
  let closing = 0;
  let isScheduled = false;

  function scan(): void {
    isScheduled = false;
    const within = [...readers()].filter((reader) => !closeIfSlow(reader));
    const furthest = within.reduce((most, reader) => Math.max(most, reader.buffered()), 0);
    longest = Math.min(furthest, limits.backlog_bytes * (1 - SCAN_SHARE));
    terminateFurthest(within);
  }

  function closeIfSlow(reader: Reader): boolean {
    const bytes = reader.buffered();
    if (bytes <= limits.backlog_bytes) return false;
    onClose("backlog_bytes", bytes);
    if (closing + bytes > limits.backlog_total_bytes * CLOSING_SHARE) {
      reader.terminate();
      return true;
    }
    reader.closeSlow();
    closing += bytes;
    setTimeout(() => {
      closing -= bytes;
    }, CLOSING_MS).unref();
    return true;
  }

  function terminateFurthest(within: readonly Reader[]): void {
    const behind = within
      .map((reader) => ({ reader, bytes: reader.unsent() }))
      .filter(({ bytes }) => bytes > 0)
      .sort((one, other) => other.bytes - one.bytes);
    total = behind.reduce((sum, { bytes }) => sum + bytes, closing);
    if (total <= limits.backlog_total_bytes) return;
    for (const { reader, bytes } of behind) {
      if (total <= limits.backlog_total_bytes * REMAINING_SHARE) return;
      total -= bytes;
      reader.terminate();
      onClose("backlog_total_bytes", bytes);
    }
  }

  return {
    /** Counts a frame that was handed to this number of sockets. */
    sent(bytes: number, sockets = 1): void {
      total += bytes * sockets;
      longest += bytes;
      const isWithin = total <= limits.backlog_total_bytes && longest <= limits.backlog_bytes;
      if (isWithin || isScheduled) return;
      isScheduled = true;
      // Bun hands published frames to the sockets at the end of this iteration of the event loop.
      setImmediate(scan);
    },
    /** The unsent bytes of all sockets together. */
    total(): number {
      let sum = closing;
      for (const reader of readers()) sum += reader.unsent();
      return sum;
    },
  };
}

import { createParser } from "eventsource-parser";
import type { AttemptDeadline } from "./attempt-deadline.ts";
import { providerErrors } from "./provider-errors.ts";

const MAX_EVENT_BYTES = 1 << 20;

interface SseReaderOptions {
  timeoutMs: number;
  /** Limit for the whole stream. */
  maxBytes: number;
  backpressure?: Backpressure | undefined;
}

/** Awaited before received packets are parsed. Undefined means no need to wait. */
export type Backpressure = () => Promise<void> | undefined;

/** Reads the data of server-sent events from a response body. */
export function createSseReader(
  stream: ReadableStream<Uint8Array>,
  deadline: AttemptDeadline,
  { timeoutMs, maxBytes, backpressure }: SseReaderOptions,
) {
  const body = stream.getReader();
  const decoder = new TextDecoder();
  let events: string[] = [];
  const parser = createParser({
    maxBufferSize: MAX_EVENT_BYTES,
    onEvent: (event) => events.push(event.data),
    onError: ({ type }) => {
      if (type === "max-buffer-size-exceeded") throw providerErrors.tooMuchData();
    },
  });
  let leftMs = timeoutMs;
  let bytesLeft = maxBytes;
  /** Received packets that are not parsed yet. */
  let packets: Uint8Array[] = [];
  let pendingRead: Promise<void> | undefined;
  /** Whether each read starts the next one. */
  let readsAhead = false;
  let bodyEnded = false;
  let parsedToEnd = false;
  deadline.onEnd(() => void body.cancel().catch(ignoreBrokenConnection));

  /** Packets are read during backpressure too: unread ones are lost if the connection breaks. */
  async function readAheadUntil(ready: Promise<void>): Promise<void> {
    readsAhead = true;
    read().catch(leaveErrorToNextRead);
    await ready;
    readsAhead = false;
  }

  async function readPacket(): Promise<void> {
    const startedAt = performance.now();
    await deadline.waitForRead(read(), leftMs);
    leftMs -= performance.now() - startedAt;
  }

  /** Reads one packet, or joins the read that is pending. */
  function read(): Promise<void> {
    pendingRead ??= body.read().then(({ value }) => {
      pendingRead = undefined;
      if (value) packets.push(value);
      else bodyEnded = true;
      bytesLeft -= value?.length ?? 0;
      if (readsAhead && !bodyEnded && bytesLeft >= 0) read().catch(leaveErrorToNextRead);
    });
    return pendingRead;
  }

  function parsePackets(): void {
    if (bytesLeft < 0) throw providerErrors.tooMuchData();
    const received = packets;
    packets = [];
    for (const packet of received) parser.feed(decoder.decode(packet, { stream: true }));
    if (!bodyEnded) return;
    parsedToEnd = true;
    // Some servers omit the blank line after their last event.
    parser.feed(`${decoder.decode()}\n\n`);
  }

  return {
    /** Time left to wait for packets, from now on. Waiting uses it up. */
    allow(ms: number): void {
      leftMs = ms;
    },
    /** The data of the next events, at least one. Undefined at the end of the stream. */
    async next(): Promise<string[] | undefined> {
      while (events.length === 0 && !parsedToEnd) {
        const ready = backpressure?.();
        if (ready) await readAheadUntil(ready);
        if (packets.length === 0 && !bodyEnded) await readPacket();
        parsePackets();
      }
      deadline.throwIfEnded();
      const parsed = events;
      events = [];
      return parsed.length > 0 ? parsed : undefined;
    },
  };
}

/** A failed read stays pending, so `readPacket` throws its error after all packets are parsed. */
const leaveErrorToNextRead = () => undefined;

/** Cancelling a body whose connection is broken fails, but there is nothing left to cancel. */
const ignoreBrokenConnection = () => undefined;

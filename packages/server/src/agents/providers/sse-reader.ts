import { createParser, type ParseError } from "eventsource-parser";
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
export class SseReader {
  /** Time left to wait for packets, in milliseconds. Waiting uses it up. */
  timeoutMs: number;
  readonly #deadline: AttemptDeadline;
  readonly #body: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #events: string[] = [];
  readonly #parser = createParser({
    maxBufferSize: MAX_EVENT_BYTES,
    onEvent: (event) => this.#events.push(event.data),
    onError: rejectOversizedEvent,
  });
  readonly #backpressure: Backpressure | undefined;
  #bytesLeft: number;
  /** Received packets that are not parsed yet. */
  #packets: Uint8Array[] = [];
  #pendingRead: Promise<void> | undefined;
  /** Whether each read starts the next one. */
  #readsAhead = false;
  #bodyEnded = false;
  #parsedToEnd = false;

  constructor(
    body: ReadableStream<Uint8Array>,
    deadline: AttemptDeadline,
    options: SseReaderOptions,
  ) {
    this.#body = body.getReader();
    this.#deadline = deadline;
    this.timeoutMs = options.timeoutMs;
    this.#bytesLeft = options.maxBytes;
    this.#backpressure = options.backpressure;
    deadline.onEnd(() => void this.#body.cancel().catch(ignoreBrokenConnection));
  }

  /** The data of the next events, at least one. Undefined at the end of the stream. */
  async next(): Promise<string[] | undefined> {
    while (this.#events.length === 0 && !this.#parsedToEnd) {
      const ready = this.#backpressure?.();
      if (ready) await this.#readAheadUntil(ready);
      if (this.#packets.length === 0 && !this.#bodyEnded) await this.#readPacket();
      this.#parsePackets();
    }
    this.#deadline.throwIfEnded();
    const events = this.#events;
    this.#events = [];
    return events.length > 0 ? events : undefined;
  }

  /** Packets are read during backpressure too: unread ones are lost if the connection breaks. */
  async #readAheadUntil(ready: Promise<void>): Promise<void> {
    this.#readsAhead = true;
    this.#read().catch(leaveErrorToNextRead);
    await ready;
    this.#readsAhead = false;
  }

  async #readPacket(): Promise<void> {
    const startedAt = performance.now();
    await this.#deadline.waitForRead(this.#read(), this.timeoutMs);
    this.timeoutMs -= performance.now() - startedAt;
  }

  /** Reads one packet, or joins the read that is pending. */
  #read(): Promise<void> {
    this.#pendingRead ??= this.#body.read().then(({ value }) => {
      this.#pendingRead = undefined;
      if (value) this.#packets.push(value);
      else this.#bodyEnded = true;
      this.#bytesLeft -= value?.length ?? 0;
      if (this.#readsAhead && !this.#bodyEnded && this.#bytesLeft >= 0) {
        this.#read().catch(leaveErrorToNextRead);
      }
    });
    return this.#pendingRead;
  }

  #parsePackets(): void {
    if (this.#bytesLeft < 0) throw providerErrors.tooMuchData();
    for (const packet of this.#packets.splice(0)) {
      this.#parser.feed(this.#decoder.decode(packet, { stream: true }));
    }
    if (this.#bodyEnded) this.#parseRest();
  }

  /** Some servers omit the blank line after their last event. */
  #parseRest(): void {
    this.#parsedToEnd = true;
    this.#parser.feed(`${this.#decoder.decode()}\n\n`);
  }
}

function rejectOversizedEvent(error: ParseError): void {
  if (error.type === "max-buffer-size-exceeded") throw providerErrors.tooMuchData();
}

/** A failed read stays pending, so `#readPacket` throws its error after all packets are parsed. */
const leaveErrorToNextRead = () => undefined;

/** Cancelling a body whose connection is broken fails, but there is nothing left to cancel. */
const ignoreBrokenConnection = () => undefined;

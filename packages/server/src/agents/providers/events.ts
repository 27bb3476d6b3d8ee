import { createParser, type ParseError } from "eventsource-parser";
import { failures } from "./failures.ts";
import type { Guard } from "./guard.ts";

const longestEvent = 1 << 20;

interface EventReaderOptions {
  patience: number;
  /** How many may come in all. */
  bytes: number;
  /** Awaited before each packet. */
  wanted?: (() => Promise<void> | undefined) | undefined;
}

/** The data of server-sent events, read one packet at a time and only as they are asked for. */
export class EventReader {
  /** How much longer, in milliseconds, to wait for packets; waiting uses it up. */
  patience: number;
  readonly #guard: Guard;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #events: string[] = [];
  readonly #parser = createParser({
    maxBufferSize: longestEvent,
    onEvent: (event) => this.#events.push(event.data),
    onError: refuseEndlessEvent,
  });
  readonly #wanted: EventReaderOptions["wanted"];
  #bytesLeft: number;
  #closed = false;

  constructor(body: ReadableStream<Uint8Array>, guard: Guard, options: EventReaderOptions) {
    this.#reader = body.getReader();
    this.#guard = guard;
    this.patience = options.patience;
    this.#bytesLeft = options.bytes;
    this.#wanted = options.wanted;
    guard.onEnd(() => void this.#reader.cancel().catch(() => {}));
  }

  /** The data of the events that come next, at least one, or undefined when the stream is over. */
  async next(): Promise<string[] | undefined> {
    while (this.#events.length === 0 && !this.#closed) {
      const wanted = this.#wanted?.();
      if (wanted) await wanted;
      await this.#readPacket();
    }
    this.#guard.check();
    const events = this.#events;
    this.#events = [];
    return events.length > 0 ? events : undefined;
  }

  async #readPacket(): Promise<void> {
    const started = performance.now();
    const packet = await this.#guard.soon(this.patience, this.#reader.read());
    this.patience -= performance.now() - started;
    if (packet.done) return this.#close();
    this.#bytesLeft -= packet.value.length;
    if (this.#bytesLeft < 0) throw failures.endless();
    this.#parser.feed(this.#decoder.decode(packet.value, { stream: true }));
  }

  /** Some servers leave out the blank line after their last event. */
  #close(): void {
    this.#closed = true;
    this.#parser.feed(`${this.#decoder.decode()}\n\n`);
  }
}

function refuseEndlessEvent(error: ParseError): void {
  if (error.type === "max-buffer-size-exceeded") throw failures.endless();
}

import { createParser, type ParseError } from "eventsource-parser";
import { failures } from "./failures.ts";
import type { Guard } from "./guard.ts";

const longestEvent = 1 << 20;

interface EventReaderOptions {
  patience: number;
  /** How many may come in all. */
  bytes: number;
  /** Awaited before what has come is looked at. */
  wanted?: (() => Promise<void> | undefined) | undefined;
}

/** The data of server-sent events, looked at only as they are asked for. */
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
  #packets: Uint8Array[] = [];
  #reading: Promise<void> | undefined;
  #readsOn = false;
  #over = false;

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
      if (wanted) await this.#readUntil(wanted);
      if (this.#packets.length === 0 && !this.#over) await this.#readPacket();
      this.#look();
    }
    this.#guard.check();
    const events = this.#events;
    this.#events = [];
    return events.length > 0 ? events : undefined;
  }

  /** What is unread when a connection breaks is lost, so it is read, and left at that. */
  async #readUntil(wanted: Promise<void>): Promise<void> {
    this.#readsOn = true;
    // That it broke is told once all that came before is looked at.
    this.#read().catch(() => {});
    await wanted;
    this.#readsOn = false;
  }

  async #readPacket(): Promise<void> {
    const started = performance.now();
    await this.#guard.soon(this.patience, this.#read());
    this.patience -= performance.now() - started;
  }

  /** One packet, the one under way if there is one; where reading goes on, others after it. */
  #read(): Promise<void> {
    this.#reading ??= this.#reader.read().then(({ value }) => {
      this.#reading = undefined;
      if (value) this.#packets.push(value);
      else this.#over = true;
      this.#bytesLeft -= value?.length ?? 0;
      if (this.#readsOn && !this.#over && this.#bytesLeft >= 0) this.#read().catch(() => {});
    });
    return this.#reading;
  }

  #look(): void {
    if (this.#bytesLeft < 0) throw failures.endless();
    for (const packet of this.#packets.splice(0)) {
      this.#parser.feed(this.#decoder.decode(packet, { stream: true }));
    }
    if (this.#over) this.#close();
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

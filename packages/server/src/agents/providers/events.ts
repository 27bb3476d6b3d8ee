import { createParser, type ParseError } from "eventsource-parser";
import { failures } from "./failures.ts";
import type { Guard } from "./guard.ts";

const longestEvent = 1 << 20;

/** The data of server-sent events, read one packet at a time and only as they are asked for. */
export class EventReader {
  /** How much longer, in milliseconds, to wait for packets; waiting uses it up. */
  patience: number;
  readonly #guard: Guard;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  readonly #queue: string[] = [];
  readonly #parser = createParser({
    maxBufferSize: longestEvent,
    onEvent: (event) => this.#queue.push(event.data),
    onError: refuseEndlessEvent,
  });
  #bytesLeft: number;
  #closed = false;

  constructor(body: ReadableStream<Uint8Array>, guard: Guard, patience: number, bytes: number) {
    this.#reader = body.getReader();
    this.#guard = guard;
    this.patience = patience;
    this.#bytesLeft = bytes;
    guard.onEnd(() => void this.#reader.cancel().catch(() => {}));
  }

  /** The data of the next event, or undefined when the stream is over. */
  async next(): Promise<string | undefined> {
    while (this.#queue.length === 0 && !this.#closed) await this.#readPacket();
    this.#guard.check();
    return this.#queue.shift();
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

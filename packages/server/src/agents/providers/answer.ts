import { failures } from "./failures.ts";
import type { ModelEvent, UsageEvent, WireEvent } from "./provider.ts";

/** More than any token is long on average; beyond it the provider ignores the limit it was given. */
const charactersPerToken = 16;

/**
 * Turns what adapters read into what a call yields. Usage is held back until text or the end, so
 * that a try which came to neither has yielded nothing and can be repeated.
 */
export class Answer {
  readonly #text = new WholeCharacters();
  #said: ModelEvent[] = [];
  #room: number;
  #usage: UsageEvent | undefined;
  #end: "stop" | "length" | "refused" | undefined;

  constructor(maxOutputTokens: number) {
    this.#room = maxOutputTokens * charactersPerToken;
  }

  /** Whether the model said that it stopped. */
  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether it goes on although it was told to stop by now. */
  get isTooLong(): boolean {
    return this.#room <= 0;
  }

  take(event: WireEvent): void {
    if (event.type === "usage") this.#usage = { ...this.#usage, ...event };
    // The first one says why, the end of the stream only that.
    if (event.type === "end") this.#end ??= event.reason;
    if (event.type === "text") this.#say(this.#text.add(event.text));
  }

  /** What is to be yielded of what was taken since the last time; pieces of text are one by then. */
  said(): readonly ModelEvent[] {
    const said = this.#said;
    this.#said = [];
    return said;
  }

  /** Throws when the answer is not whole. */
  *finish(): Iterable<ModelEvent> {
    const reason = this.isTooLong ? "length" : this.#end;
    if (reason === undefined) throw failures.brokenOff();
    this.#say(this.#text.rest());
    this.#tellUsage();
    yield* this.said();
    if (reason === "refused") throw failures.answerRefused();
    yield { type: "end", reason };
  }

  #say(text: string): void {
    if (text === "") return;
    this.#tellUsage();
    this.#room -= text.length;
    const last = this.#said.at(-1);
    if (last?.type === "text") last.text += text;
    else this.#said.push({ type: "text", text });
  }

  #tellUsage(): void {
    if (this.#usage) this.#said.push(this.#usage);
    this.#usage = undefined;
  }
}

/**
 * Text that arrives in pieces, without ever splitting a character: JSON may carry the halves of a
 * surrogate pair in two events. What no store can hold (half characters, NUL) becomes U+FFFD.
 */
class WholeCharacters {
  #half = "";

  add(piece: string): string {
    const text = this.#half + piece;
    this.#half = endsInHalf(text) ? text.slice(-1) : "";
    return storable(this.#half === "" ? text : text.slice(0, -1));
  }

  /** What is left when nothing follows. */
  rest(): string {
    const rest = storable(this.#half);
    this.#half = "";
    return rest;
  }
}

const endsInHalf = (text: string) => (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;

const storable = (text: string) => text.toWellFormed().replaceAll("\0", "\ufffd");

import type { AdapterOutput, ModelOutput, SentToolUse, UsageOutput } from "./adapter.ts";
import { providerErrors } from "./provider-errors.ts";

/** Longer than any token is on average. Text beyond it means the provider ignores the limit. */
const MAX_CHARACTERS_PER_TOKEN = 16;

/**
 * Turns the outputs of an adapter into those that a call yields. Usage is held back until there is
 * text, thinking, a call or an end: an attempt that fails before has yielded nothing and can be retried.
 */
export class Answer {
  /** The first half of a character, which the next piece of text completes. */
  #highSurrogate = "";
  #outputs: ModelOutput[] = [];
  #charactersLeft: number;
  #usage: UsageOutput | undefined;
  /** Held back until it is known to be complete: the end tells whether it was cut off. */
  #lastCall: SentToolUse | undefined;
  #hasCalls = false;
  #end: "stop" | "length" | "refused" | undefined;

  constructor(maxOutputTokens: number) {
    this.#charactersLeft = maxOutputTokens * MAX_CHARACTERS_PER_TOKEN;
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  /** Whether the text exceeds the token limit by far. */
  get isTooLong(): boolean {
    return this.#charactersLeft <= 0;
  }

  add(output: AdapterOutput): void {
    if (output.type === "usage") this.#usage = { ...this.#usage, ...output };
    // Only the first end has the reason: the last event of a stream is a bare "stop".
    if (output.type === "end") this.#end ??= output.reason;
    if (output.type === "text") this.#addText(this.#joined(output.text, false));
    if (output.type === "thinking") this.#append("thinking", output.text);
    if (output.type === "tool_use") this.#addCall(output);
  }

  /** Returns the outputs since the last call, with consecutive texts and thoughts joined. */
  takeOutputs(): readonly ModelOutput[] {
    const outputs = this.#outputs;
    this.#outputs = [];
    return outputs;
  }

  /** Yields the remaining outputs. Throws if the answer is incomplete or refused. */
  *finish(): Iterable<ModelOutput> {
    const reason = this.isTooLong ? "length" : this.#end;
    if (reason === undefined) throw providerErrors.incompleteAnswer();
    this.#addText(this.#joined("", true));
    this.#endCall(reason === "length");
    this.#addUsage();
    yield* this.takeOutputs();
    if (reason === "refused") throw providerErrors.answerRefused();
    // Servers report the end of an answer with calls by different reasons.
    yield { type: "end", reason: reason === "stop" && this.#hasCalls ? "tool_use" : reason };
  }

  #addCall(call: SentToolUse): void {
    this.#addText(this.#joined("", true));
    this.#endCall(false);
    this.#addUsage();
    this.#hasCalls = true;
    this.#lastCall = call;
  }

  /** A call that is cut off before its arguments must not be made without them. */
  #endCall(isCutOff: boolean): void {
    if (!this.#lastCall) return;
    const { isBare, ...call } = this.#lastCall;
    this.#lastCall = undefined;
    this.#outputs.push(isBare && isCutOff ? { ...call, input: null } : call);
  }

  #addText(text: string): void {
    if (text === "") return;
    this.#endCall(false);
    this.#charactersLeft -= text.length;
    this.#append("text", text);
  }

  #append(type: "text" | "thinking", text: string): void {
    this.#addUsage();
    const last = this.#outputs.at(-1);
    if (last?.type === type) last.text += text;
    else this.#outputs.push({ type, text });
  }

  /**
   * Joins text that arrives in pieces without splitting a character: JSON may carry the two halves
   * of a surrogate pair in two events. Replaces what no store can keep (lone surrogates, NUL).
   */
  #joined(piece: string, isEnd: boolean): string {
    const text = this.#highSurrogate + piece;
    const isSplit = !isEnd && endsInHighSurrogate(text);
    this.#highSurrogate = isSplit ? text.slice(-1) : "";
    return storable(isSplit ? text.slice(0, -1) : text);
  }

  #addUsage(): void {
    if (this.#usage) this.#outputs.push(this.#usage);
    this.#usage = undefined;
  }
}

const endsInHighSurrogate = (text: string) =>
  (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800;

const storable = (text: string) => text.toWellFormed().replaceAll("\0", "\ufffd");

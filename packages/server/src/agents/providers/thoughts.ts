import type { ProviderFields } from "../../rules/model-content.ts";
import type { SentToolUse } from "./adapter.ts";
import { isDeep } from "./tool-calls.ts";
import { valueAt } from "./wire.ts";

/** Longer thoughts are not sent back: they would fill the context. */
const MAX_CHARACTERS = 256 << 10;

/**
 * What a model thinks before it calls tools, in the format of its provider, collected from untrusted
 * fragments. It is sent back with the calls, and neither shown nor stored.
 */
abstract class Thoughts {
  #left = MAX_CHARACTERS;

  protected abstract parts(): ProviderFields[];

  /** Adds the thoughts to the first of the calls that they led to. */
  before([first, ...others]: readonly SentToolUse[]): SentToolUse[] {
    if (!first) return [];
    const thoughts = this.#left < 0 ? [] : this.parts();
    return [thoughts.length > 0 ? { ...first, thoughts } : first, ...others];
  }

  /** The text at a field; empty if there is none, or there was too much. */
  protected textAt(value: unknown, field: string): string {
    const text = valueAt(value, field);
    return typeof text === "string" ? this.#bounded(text, text.length) : "";
  }

  /** A copy of an object; empty if it is none, or there was too much. */
  protected fieldsOf(value: unknown): Record<string, unknown> {
    if (typeof value !== "object" || value === null || isDeep(value)) return {};
    return this.#bounded({ ...value }, JSON.stringify(value).length, {});
  }

  #bounded<Value>(value: Value, characters: number, otherwise = "" as Value): Value {
    this.#left -= characters;
    return this.#left < 0 ? otherwise : value;
  }
}

/** Compatible servers have three fields for thoughts. Those that send several mean the same by them. */
export class OpenAiThoughts extends Thoughts {
  #content = "";
  #reasoning = "";
  readonly #details: Record<string, unknown>[] = [];

  add(delta: unknown): void {
    this.#content += this.textAt(delta, "reasoning_content");
    this.#reasoning += this.textAt(delta, "reasoning");
    const details = valueAt(delta, "reasoning_details");
    for (const detail of Array.isArray(details) ? details : []) this.#addDetail(detail);
  }

  /** OpenRouter streams a text in many details. It wants them back as one. */
  #addDetail(sent: unknown): void {
    const detail = this.fieldsOf(sent);
    const last = this.#details.at(-1);
    const isText = detail.type === "reasoning.text" && last?.type === detail.type;
    if (!isText || last.index !== detail.index) this.#details.push(detail);
    else Object.assign(last, detail, { text: `${last.text ?? ""}${detail.text ?? ""}` });
  }

  protected parts(): ProviderFields[] {
    if (this.#details.length > 0) return [{ reasoning_details: this.#details }];
    if (this.#content !== "") return [{ reasoning_content: this.#content }];
    return this.#reasoning === "" ? [] : [{ reasoning: this.#reasoning }];
  }
}

/** Blocks of thoughts, with the signatures that prove them. */
export class AnthropicThoughts extends Thoughts {
  readonly #blocks = new Map<unknown, Record<string, unknown>>();

  start(index: unknown, block: unknown): void {
    const type = valueAt(block, "type");
    if (type === "thinking" || type === "redacted_thinking") {
      this.#blocks.set(index, this.fieldsOf(block));
    }
  }

  add(index: unknown, delta: unknown): void {
    const block = this.#blocks.get(index);
    for (const field of block ? ["thinking", "signature"] : []) {
      const text = this.textAt(delta, field);
      if (block && text !== "") block[field] = `${block[field] ?? ""}${text}`;
    }
  }

  protected parts(): ProviderFields[] {
    return [...this.#blocks.values()];
  }
}

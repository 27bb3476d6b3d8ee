/** Code units of a payload that are rendered. A message has room for fewer. */
const MAX_CHARACTERS = 40_000;

/** Limits how much of a payload is rendered, and so what that costs. */
export class Budget {
  #left = MAX_CHARACTERS;
  #isExceeded = false;

  /** Whether something was cut. Everything after it is left out. */
  get isExceeded(): boolean {
    return this.#isExceeded;
  }

  /** A value of a payload with its texts, as far as the budget allows. */
  take<Value>(value: Value): Value {
    return this.#taken(value, "") as Value;
  }

  #taken(value: unknown, key: string): unknown {
    if (typeof value === "string") return this.#text(value, key);
    if (Array.isArray(value)) {
      const items: unknown[] = [];
      for (const item of value) {
        if (this.#isExceeded) break;
        items.push(this.#taken(item, key));
      }
      return items;
    }
    if (typeof value !== "object" || value === null) return value;
    const entries = Object.entries(value).map(([name, each]) => [name, this.#taken(each, name)]);
    return Object.fromEntries(entries);
  }

  #text(text: string, key: string): string {
    if (key === "type") return text;
    if (this.#isExceeded) return "";
    if (text.length <= this.#left) {
      this.#left -= text.length;
      return text;
    }
    this.#isExceeded = true;
    // A part of an address would lead elsewhere.
    return /(?:url|link)$/.test(key) ? "" : cutText(text.slice(0, this.#left));
  }
}

/** The start of a text up to a line break, or else a space, so that no address in it is cut. */
const cutText = (start: string) =>
  start.slice(0, Math.max(start.lastIndexOf("\n"), 0) || Math.max(start.lastIndexOf(" "), 0));

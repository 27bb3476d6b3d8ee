/** More than a node receives between two reads of the log. */
const MAX_REMEMBERED = 50_000;

/** Remembers which durable changes were delivered here, so that a read of the log repeats none. */
export class SeenChanges {
  readonly #ids = new Set<string>();

  add(id: string): void {
    this.#ids.add(id);
    for (const oldest of this.#ids) {
      if (this.#ids.size <= MAX_REMEMBERED) return;
      this.#ids.delete(oldest);
    }
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }
}

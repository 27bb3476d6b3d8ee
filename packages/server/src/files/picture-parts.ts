export class Damaged extends Error {
  override name = "Damaged";
}

export const isAscii = (bytes: Uint8Array, at: number, text: string) =>
  [...text].every((character, place) => bytes[at + place] === character.charCodeAt(0));

/** Collects the ranges of a file to keep, in their order. Adjacent ranges become one part. */
export class KeptParts {
  readonly #bytes: Uint8Array;
  readonly #ranges: { readonly start: number; end: number }[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  keep(start: number, end: number): void {
    const last = this.#ranges.at(-1);
    if (last?.end === start) last.end = end;
    else this.#ranges.push({ start, end });
  }

  parts(): Uint8Array[] {
    return this.#ranges.map(({ start, end }) => this.#bytes.subarray(start, end));
  }
}

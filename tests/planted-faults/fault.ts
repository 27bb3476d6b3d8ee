/** A mistake that somebody could make. It is planted in a copy of the sources, and tests must find it. */
export interface Fault {
  /** What a user would notice, as a sentence. */
  readonly name: string;
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
  /** The test files in each of which a test must fail. */
  readonly tests: readonly string[];
}

/** The source with the fault in it. */
export function planted(source: string, { name, file, find, replace }: Fault): string {
  const places = source.split(find).length - 1;
  if (places === 1) return source.replace(find, () => replace);
  throw new Error(
    `«${name}» is outdated: ${file} must contain this text once, and contains it ${places} times:\n${find}`,
  );
}

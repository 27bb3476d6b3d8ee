import type { Awaitable } from "./awaitable.ts";

/** What is sealed with the master key, whatever it is. */
export interface SealedTextReads {
  /** The beginnings of all sealed texts, which name the master key: `v1.<id>`. Each once. */
  sealPrefixes(): Awaitable<string[]>;
}

import type { SealedTextReads } from "../sealed-texts.ts";
import { SEAL_PREFIXES } from "../shared/sealed-texts.ts";
import type { Connection } from "./connection.ts";

export function sealedTextReads(db: Connection): SealedTextReads {
  const prefixes = db.query<{ prefix: string }>(SEAL_PREFIXES);
  return { sealPrefixes: () => prefixes.all().map(({ prefix }) => prefix) };
}

import type { SealedTextReads } from "../sealed-texts.ts";
import { SEAL_PREFIXES } from "../shared/sealed-texts.ts";
import type { Methods } from "./unit.ts";

export const sealedTextReads: Methods<keyof SealedTextReads> = {
  sealPrefixes: async (unit) =>
    (await unit.all<{ prefix: string }>(SEAL_PREFIXES)).map(({ prefix }) => prefix),
};

import { anthropic } from "./anthropic.ts";
import { openai } from "./openai.ts";
import type { Adapter } from "./provider.ts";

/** The wire protocols a provider can be configured with. */
export const adapters = {
  anthropic,
  openai,
} satisfies Record<string, Adapter>;

export type ProtocolName = keyof typeof adapters;

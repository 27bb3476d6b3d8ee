import type { Adapter } from "./adapter.ts";
import { anthropic } from "./anthropic.ts";
import { openai } from "./openai.ts";

/** The wire protocols that a provider can be configured with. */
export const adapters = {
  anthropic,
  openai,
} satisfies Record<string, Adapter>;

export type ProtocolName = keyof typeof adapters;

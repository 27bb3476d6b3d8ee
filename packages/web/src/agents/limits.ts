import type { AgentField } from "../lib/router.ts";

/** Which limit a refused answer has met, by the service's words; nothing else tells. */
export function limitIn(refusal: string): AgentField {
  if (refusal.includes("times a minute")) return "turns_per_minute";
  return refusal.includes("in this conversation") ? "chat_daily_tokens" : "daily_tokens";
}

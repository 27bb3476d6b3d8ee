import type { AgentField } from "../lib/router.ts";

/** The limit that a turn exceeded. The error has no field for it, so its message is searched. */
export function exceededLimit(message: string): AgentField {
  if (message.includes("times a minute")) return "turns_per_minute";
  return message.includes("in this conversation") ? "chat_daily_tokens" : "daily_tokens";
}

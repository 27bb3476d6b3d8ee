type Limit = "turns_per_minute" | "chat_daily_tokens" | "daily_tokens";

/** The limit that a turn exceeded. The error has no field for it, so its message is searched. */
export function exceededLimit(message: string): Limit {
  if (message.includes("times a minute")) return "turns_per_minute";
  return message.includes("tokens a day in this conversation")
    ? "chat_daily_tokens"
    : "daily_tokens";
}

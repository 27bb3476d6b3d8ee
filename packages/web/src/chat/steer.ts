import type { LocalChat, LocalMessage, MessageWindow } from "@parley/client";
import type { Account } from "@parley/protocol";
import { isMyAgent } from "../lib/names.ts";

/** The agent's owner, whoever's message started it, and a group's admin stop and repeat a turn. */
export function maySteer(
  { sender, turn }: LocalMessage,
  chat: LocalChat,
  me: Account,
  { items }: MessageWindow,
): boolean {
  if (isMyAgent(sender, me) || chat.admin === me.username) return true;
  const trigger = items.findLast(({ id }) => id === turn?.triggered_by);
  return trigger?.sender.username === me.username;
}

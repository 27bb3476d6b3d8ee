import type { LiveModel, LocalChat, LocalMessage } from "@parley/client";
import type { Account } from "@parley/protocol";
import { isMyAgent } from "../../lib/names.ts";
import { loadedMessage } from "../loaded-message.ts";

/** Whether the person may stop and repeat a turn: owner of the agent, sender of the question, admin. */
export function mayControlTurn(
  { sender, turn }: LocalMessage,
  chat: LocalChat,
  me: Account,
  model: LiveModel,
): boolean {
  if (isMyAgent(sender, me) || chat.admin === me.username) return true;
  const trigger = turn && loadedMessage(model, chat.id, turn.triggered_by);
  return trigger?.sender.username === me.username;
}

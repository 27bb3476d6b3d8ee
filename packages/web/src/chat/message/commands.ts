import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { copyText } from "../../lib/copy.ts";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { isMyAgent } from "../../lib/names.ts";
import { toast } from "../../lib/toasts.ts";
import type { MenuItem } from "../../ui/Menu.tsx";
import { useChatContext } from "../context.ts";
import { mayControlTurn } from "./turn-rights.ts";

export type Command = MenuItem;

/** The commands that the person may use on a message, in the order of the menu. */
export function useCommands(message: LocalMessage): Command[] {
  const { chat, isReadOnly, onReply, onEdit, onReactors, onReceipt, onReport, onDelete } =
    useChatContext();
  const me = useSelf();
  const client = useClient();
  const { id, content, turn, finalized_at, sender } = message;
  const mine = sender.username === me.username;
  const ours = mine || isMyAgent(sender, me);
  const controlsTurn = turn !== null && mayControlTurn(message, chat, me, client.model);
  const offered: (Command | false)[] = [
    controlsTurn &&
      !finalized_at && {
        icon: "stop",
        label: "Stop",
        onSelect: () => void client.stopAgentTurn({ message_id: id }).catch(showError),
      },
    !isReadOnly && { icon: "reply", label: "Reply", onSelect: () => onReply(message) },
    content !== "" && {
      icon: "copy",
      label: "Copy text",
      onSelect: () => void copyText(content).then(() => toast("Copied."), showError),
    },
    message.reactions.length > 0 && {
      icon: "smile",
      label: "Who reacted",
      onSelect: () => onReactors(id),
    },
    mine && !isReadOnly && { icon: "edit", label: "Edit", onSelect: () => onEdit(message) },
    controlsTurn &&
      !isReadOnly &&
      finalized_at !== null && {
        icon: "retry",
        label: "Answer again",
        onSelect: () => void client.retryAgentTurn({ message_id: id }).catch(showError),
      },
    turn !== null && ours && { icon: "receipt", label: "Receipt", onSelect: () => onReceipt(id) },
    !mine && { icon: "flag", label: "Report", onSelect: () => onReport(id) },
    {
      icon: "hide",
      label: "Delete for me",
      onSelect: () => onDelete({ messageId: id, scope: "me" }),
    },
    (ours || chat.admin === me.username) && {
      icon: "trash",
      label: "Delete for everyone",
      danger: true,
      onSelect: () => onDelete({ messageId: id, scope: "everyone" }),
    },
  ];
  return offered.filter((command) => command !== false);
}

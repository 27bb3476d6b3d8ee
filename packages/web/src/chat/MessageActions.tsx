import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useRef, useState } from "react";
import { EmojiPicker } from "../emoji/EmojiPicker.tsx";
import { complain } from "../lib/action.ts";
import { copyText } from "../lib/copy.ts";
import { useSelf } from "../lib/me.ts";
import { isMyAgent } from "../lib/names.ts";
import { IconButton } from "../ui/Button.tsx";
import { Menu, type MenuItem } from "../ui/Menu.tsx";
import { toast } from "../ui/Toasts.tsx";
import { useTools } from "./context.ts";
import { maySteer } from "./steer.ts";

interface ActionsProps {
  message: LocalMessage;
  mine: boolean;
}

/** Appears with the pointer or the focus; until then it is in nobody's way, Tab's included. */
export function MessageActions({ message, mine }: ActionsProps) {
  return message.delivery === "sent" && <Toolbar message={message} mine={mine} />;
}

function Toolbar({ message, mine }: ActionsProps) {
  const { chat, onReply } = useTools();
  const me = useSelf();
  const client = useClient();
  const emoji = useRef<HTMLButtonElement>(null);
  const [picking, setPicking] = useState(false);
  const items = useItems(message, mine);
  const { id, turn, finalized_at } = message;
  const stoppable = turn && !finalized_at && maySteer(message, chat, me, client.model);
  return (
    <div
      className={`invisible absolute z-10 flex rounded-md bg-raised p-0.5 shadow-pop group-focus-within:visible group-hover:visible has-aria-expanded:visible ${place(mine, message)}`}
    >
      {stoppable && (
        <IconButton
          icon="stop"
          label="Stop"
          small
          onClick={() => client.stopAgentTurn({ message_id: id }).catch(complain)}
        />
      )}
      <IconButton
        ref={emoji}
        icon="smile"
        label="React"
        small
        aria-haspopup="dialog"
        aria-expanded={picking}
        onClick={() => setPicking(!picking)}
      />
      <IconButton icon="reply" label="Reply" small onClick={() => onReply(message)} />
      <Menu label="More" small items={items} />
      {picking && (
        <EmojiPicker
          anchor={emoji}
          onClose={() => setPicking(false)}
          onPick={(picked) => {
            setPicking(false);
            client.model.react(message.id, picked).catch(complain);
          }}
        />
      )}
    </div>
  );
}

function useItems(message: LocalMessage, mine: boolean): MenuItem[] {
  const { chat, onEdit, onReceipt, onDelete } = useTools();
  const me = useSelf();
  const client = useClient();
  const { id, content, turn, finalized_at, sender } = message;
  const ours = mine || isMyAgent(sender, me);
  const items: MenuItem[] = [
    {
      icon: "copy",
      label: "Copy text",
      onSelect: () => void copyText(content).then(() => toast("Copied."), complain),
    },
  ];
  if (mine) items.push({ icon: "edit", label: "Edit", onSelect: () => onEdit(message) });
  if (turn && finalized_at && maySteer(message, chat, me, client.model)) {
    items.push({
      icon: "retry",
      label: "Answer again",
      onSelect: () => void client.retryAgentTurn({ message_id: id }).catch(complain),
    });
  }
  if (turn && ours) {
    items.push({ icon: "receipt", label: "Receipt", onSelect: () => onReceipt(id) });
  }
  items.push({
    icon: "hide",
    label: "Delete for me",
    onSelect: () => void client.model.remove(chat.id, [id], "me").catch(complain),
  });
  if (ours || chat.admin === me.username) {
    items.push({
      icon: "trash",
      label: "Delete for everyone",
      danger: true,
      onSelect: () => onDelete(id),
    });
  }
  return items;
}

/** Beside a bubble where the conversation has room for it; above otherwise, and above agents. */
function place(mine: boolean, { sender }: LocalMessage): string {
  if (mine) return "-top-9 right-0 @3xl:top-0 @3xl:right-full @3xl:mr-2";
  if (sender.kind === "agent") return "-top-9 right-0";
  return "-top-9 left-0 @3xl:top-0 @3xl:left-full @3xl:ml-2";
}

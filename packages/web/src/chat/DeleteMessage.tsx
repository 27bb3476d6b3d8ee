import { useClient } from "@parley/client/react";
import { complain } from "../lib/action.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { useTools } from "./context.ts";

interface DeleteMessageProps {
  messageId: string;
  onClose: () => void;
}

export function DeleteMessage({ messageId, onClose }: DeleteMessageProps) {
  const { chat } = useTools();
  const { model } = useClient();
  const remove = () => {
    onClose();
    void model.remove(chat.id, [messageId], "everyone").catch(complain);
  };
  return (
    <Confirm
      title="Delete for everyone?"
      back="Keep"
      action="Delete"
      onBack={onClose}
      onConfirm={remove}
    >
      The message goes away for everyone in the conversation, for good.
    </Confirm>
  );
}

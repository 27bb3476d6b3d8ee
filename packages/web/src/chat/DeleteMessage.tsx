import { useClient } from "@parley/client/react";
import { complain } from "../lib/action.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { type Deletion, useTools } from "./context.ts";

interface DeleteMessageProps extends Deletion {
  onClose: () => void;
}

export function DeleteMessage({ messageId, scope, onClose }: DeleteMessageProps) {
  const { chat } = useTools();
  const { model } = useClient();
  const remove = () => {
    onClose();
    void model.remove(chat.id, [messageId], scope).catch(complain);
  };
  return (
    <Confirm
      title={`Delete for ${scope}?`}
      back="Keep"
      action="Delete"
      onBack={onClose}
      onConfirm={remove}
    >
      {scope === "me"
        ? "The message goes away on all of your devices, for good. The others keep it."
        : "The message goes away for everyone in the conversation, for good."}
    </Confirm>
  );
}

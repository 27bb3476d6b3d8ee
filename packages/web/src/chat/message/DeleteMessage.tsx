import { useClient } from "@parley/client/react";
import { showError } from "../../lib/errors.ts";
import { Confirm } from "../../ui/Confirm.tsx";
import { type Deletion, useChatContext } from "../context.ts";

interface DeleteMessageProps extends Deletion {
  onClose: () => void;
}

export function DeleteMessage({ messageId, scope, onClose }: DeleteMessageProps) {
  const { chat } = useChatContext();
  const { model } = useClient();
  const remove = () => {
    onClose();
    void model.remove(chat.id, [messageId], scope).catch(showError);
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

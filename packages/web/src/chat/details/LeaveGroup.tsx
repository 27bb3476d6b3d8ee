import type { LocalChat } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useState } from "react";
import { showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { chatTitle } from "../../lib/names.ts";
import { closeChat } from "../../lib/router.ts";
import { Checkbox } from "../../ui/Checkbox.tsx";
import { Confirm } from "../../ui/Confirm.tsx";

interface LeaveGroupProps {
  chat: LocalChat;
  onClose: () => void;
}

/** Asks before the person leaves a group, which may be another one than the open one. */
export default function LeaveGroup({ chat, onClose }: LeaveGroupProps) {
  const me = useSelf();
  const client = useClient();
  const [final, setFinal] = useState(false);
  const leave = async () => {
    try {
      await client.leaveChat({ chat_id: chat.id, final });
      onClose();
      closeChat(chat.id);
    } catch (error) {
      showError(error);
    }
  };
  return (
    <Confirm
      title={`Leave ${chatTitle(chat, me)}?`}
      back="Stay"
      action="Leave"
      onBack={onClose}
      onConfirm={leave}
      option={
        <Checkbox
          label="For good"
          hint="Nobody can add you to this group again."
          checked={final}
          onChange={setFinal}
        />
      }
    >
      Your agents leave with you. To come back, somebody in the group has to add you.
    </Confirm>
  );
}

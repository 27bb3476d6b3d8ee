import { type Client, isCallError } from "@parley/client";
import { useChatIds, useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useState } from "react";
import { showError } from "../../lib/errors.ts";
import { count } from "../../lib/names.ts";
import { closeChat } from "../../lib/router.ts";
import { toast } from "../../lib/toasts.ts";
import { Checkbox } from "../../ui/Checkbox.tsx";
import { Confirm } from "../../ui/Confirm.tsx";
import { useChatContext } from "../context.ts";

interface BlockPersonProps {
  account: Account;
  onClose: () => void;
}

/** Asks, then blocks a person, and leaves the groups that they have started if one wants to. */
export function BlockPerson({ account, onClose }: BlockPersonProps) {
  const client = useClient();
  const { chat } = useChatContext();
  const { username, display_name } = account;
  const [isLeaving, setLeaving] = useState(false);
  const hasGroups = useChatIds().some((id) => {
    const each = client.model.get(`chat:${id}`);
    return each?.kind === "group" && each.created_by.username === username;
  });
  const block = async () => {
    onClose();
    try {
      if (!isLeaving) await client.blockUser({ username });
      const left = isLeaving ? await leaveGroups(client, username) : 0;
      if (client.model.get(`chat:${chat.id}`) === null) closeChat(chat.id);
      const note = left > 0 ? ` You left ${count(left, "group")}.` : "";
      toast(`${display_name} is blocked.${note}`);
    } catch (error) {
      showError(error);
    }
  };
  return (
    <Confirm
      title={`Block ${display_name}?`}
      back="Cancel"
      action="Block"
      onBack={onClose}
      onConfirm={block}
      option={
        hasGroups && (
          <Checkbox
            label="Leave their groups"
            hint="All that they have started and in which you have never written."
            checked={isLeaving}
            onChange={setLeaving}
          />
        )
      }
    >
      They and their agents cannot write to you, add you to groups or mention you, and your agents
      do not answer them. In groups that you share, their messages are folded away. They are not
      told.
    </Confirm>
  );
}

/** Blocks a person and leaves their groups. A call leaves some of them, and many calls have to wait. */
async function leaveGroups(client: Client, username: string): Promise<number> {
  for (let left = 0; ; ) {
    try {
      const page = await client.blockUser({ username, leave_groups: true });
      left += page?.groups_left ?? 0;
      if (!page?.has_more) return left;
    } catch (error) {
      const seconds = isCallError(error) && error.code === "rate_limited" && error.retryAfter;
      if (!seconds) throw error;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  }
}

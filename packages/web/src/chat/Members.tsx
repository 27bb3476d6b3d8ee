import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useState } from "react";
import { openDirect } from "../agents/sandbox.ts";
import { complain, useAction, wordsFor } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { nameOf } from "../lib/names.ts";
import { PeoplePicker } from "../people/PeoplePicker.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Menu, type MenuItem } from "../ui/Menu.tsx";
import { Notice } from "../ui/Notice.tsx";
import { OwnerChip } from "../ui/OwnerChip.tsx";
import { useTools } from "./context.ts";

export function Members() {
  const { chat } = useTools();
  const [adding, setAdding] = useState(false);
  const shown = chat.participants.filter(({ kind }) => kind === "human" || chat.kind === "direct");
  return (
    <section aria-labelledby="members-heading">
      <div className="mb-2 flex items-center justify-between">
        <h3 id="members-heading" className="text-base font-semibold">
          People
        </h3>
        {chat.kind === "group" && (
          <Button size="small" icon="plus" look="quiet" onClick={() => setAdding(true)}>
            Add
          </Button>
        )}
      </div>
      <ul className="flex flex-col">
        {shown.map((account) => (
          <Member key={account.username} account={account} />
        ))}
      </ul>
      {adding && <AddMembers onClose={() => setAdding(false)} />}
    </section>
  );
}

function Member({ account }: { account: Account }) {
  const { chat } = useTools();
  const me = useSelf();
  const client = useClient();
  const [asking, setAsking] = useState(false);
  const self = account.username === me.username;
  const items: MenuItem[] = [];
  if (!self) {
    items.push({
      icon: "send",
      label: "Message",
      onSelect: () => void openDirect(client, account.username).catch(complain),
    });
  }
  if (chat.kind === "group" && !self && chat.admin === me.username) {
    items.push({
      icon: "trash",
      label: "Remove from group",
      danger: true,
      onSelect: () => setAsking(true),
    });
  }
  const remove = () => {
    setAsking(false);
    client.removeChatMember({ chat_id: chat.id, username: account.username }).catch(complain);
  };
  return (
    <li className="flex min-h-12 items-center gap-3">
      <Avatar account={account} size={32} />
      <span className="min-w-0 flex-1">
        <span className="flex flex-wrap items-baseline gap-x-1.5 text-base font-medium">
          <span className="min-w-0 break-words">{nameOf(account)}</span>
          {self && <span className="font-normal text-ink-3">(you)</span>}
          <OwnerChip account={account} />
        </span>
        <span className="block text-xs break-all text-ink-3">
          @{account.username}
          {chat.admin === account.username && " · admin"}
        </span>
      </span>
      {items.length > 0 && (
        <Menu label={`Options for ${account.display_name}`} small items={items} />
      )}
      {asking && (
        <Confirm
          title={`Remove ${account.display_name}?`}
          back="Keep"
          action="Remove"
          onBack={() => setAsking(false)}
          onConfirm={remove}
        >
          Their agents leave with them. To come back, somebody in the group has to add them.
        </Confirm>
      )}
    </li>
  );
}

function AddMembers({ onClose }: { onClose: () => void }) {
  const { chat } = useTools();
  const client = useClient();
  const { busy, error, run } = useAction();
  const [chosen, setChosen] = useState<Account[]>([]);
  const add = () =>
    run(async () => {
      const usernames = chosen.map(({ username }) => username);
      await client.addChatMembers({ chat_id: chat.id, usernames });
      onClose();
    });
  return (
    <Dialog title="Add people" onClose={onClose}>
      <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5">
        <PeoplePicker
          chosen={chosen}
          onChange={setChosen}
          agents={false}
          without={chat.participants.map(({ username }) => username)}
        />
        <p className="text-sm text-ink-3">They will see the whole history of the group.</p>
        {error !== null && <Notice>{wordsFor(error)}</Notice>}
        <Button look="primary" busy={busy} disabled={chosen.length === 0} onClick={add}>
          Add to group
        </Button>
      </div>
    </Dialog>
  );
}

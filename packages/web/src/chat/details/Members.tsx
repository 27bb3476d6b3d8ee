import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useState } from "react";
import { openDirect } from "../../agents/sandbox.ts";
import { useAction } from "../../lib/action.ts";
import { useIsBlocked } from "../../lib/blocked.ts";
import { describeError, showError } from "../../lib/errors.ts";
import { useSelf } from "../../lib/me.ts";
import { meetsPeople, useMayStart, usePolicy } from "../../lib/policy.ts";
import { PeoplePicker } from "../../people/PeoplePicker.tsx";
import { AccountLabel } from "../../ui/AccountLabel.tsx";
import { Button } from "../../ui/Button.tsx";
import { Confirm } from "../../ui/Confirm.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Menu, type MenuItem } from "../../ui/Menu.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { useChatContext } from "../context.ts";
import { BlockPerson } from "./BlockPerson.tsx";

export function Members() {
  const { chat } = useChatContext();
  const [adding, setAdding] = useState(false);
  const mayAdd = meetsPeople(usePolicy());
  const shown = chat.participants.filter(({ kind }) => kind === "human" || chat.kind === "direct");
  return (
    <section aria-labelledby="members-heading">
      <div className="mb-2 flex items-center justify-between">
        <h3 id="members-heading" className="text-base font-semibold">
          People
        </h3>
        {chat.kind === "group" && mayAdd && (
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
  const { chat } = useChatContext();
  const me = useSelf();
  const client = useClient();
  const isBlocked = useIsBlocked();
  const mayStart = useMayStart();
  const [asking, setAsking] = useState<"remove" | "block" | null>(null);
  const self = account.username === me.username;
  const items: MenuItem[] = [];
  if (!self && !account.deleted && mayStart(account)) {
    items.push({
      icon: "send",
      label: "Message",
      onSelect: () => void openDirect(client, account.username).catch(showError),
    });
  }
  if (!self && account.kind === "human") {
    items.push(
      isBlocked(account)
        ? {
            icon: "shield",
            label: "Unblock",
            onSelect: () =>
              void client.unblockUser({ username: account.username }).catch(showError),
          }
        : { icon: "block", label: "Block", danger: true, onSelect: () => setAsking("block") },
    );
  }
  if (chat.kind === "group" && !self && chat.admin === me.username) {
    items.push({
      icon: "trash",
      label: "Remove from group",
      danger: true,
      onSelect: () => setAsking("remove"),
    });
  }
  const close = () => setAsking(null);
  const remove = () => {
    close();
    client.removeChatMember({ chat_id: chat.id, username: account.username }).catch(showError);
  };
  return (
    <li className="flex min-h-12 items-center gap-3">
      <AccountLabel
        account={account}
        isSelf={self}
        note={noteOf(chat.admin === account.username, !self && isBlocked(account))}
      />
      {items.length > 0 && (
        <Menu label={`Options for ${account.display_name}`} small items={items} />
      )}
      {asking === "block" && <BlockPerson account={account} onClose={close} />}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${account.display_name}?`}
          back="Keep"
          action="Remove"
          onBack={close}
          onConfirm={remove}
        >
          Their agents leave with them. To come back, somebody in the group has to add them.
        </Confirm>
      )}
    </li>
  );
}

const noteOf = (admin: boolean, blocked: boolean) =>
  `${admin ? " · admin" : ""}${blocked ? " · blocked" : ""}`;

function AddMembers({ onClose }: { onClose: () => void }) {
  const { chat } = useChatContext();
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
        {error !== null && <Notice>{describeError(error)}</Notice>}
        <Button look="primary" busy={busy} disabled={chosen.length === 0} onClick={add}>
          Add to group
        </Button>
      </div>
    </Dialog>
  );
}

import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { EmojiButton } from "../emoji/EmojiButton.tsx";
import { showError } from "../lib/errors.ts";
import { IconButton } from "../ui/Button.tsx";
import { Menu } from "../ui/Menu.tsx";
import { type Command, useCommands } from "./commands.ts";

interface ActionsProps {
  message: LocalMessage;
  mine: boolean;
  /** It stands below the name of whoever wrote it. */
  first: boolean;
  /** It is the latest answer: what can be done with it is always in sight. */
  pinned: boolean;
}

/**
 * What can be done with a message. It shows for the one message that is pointed at or has the focus
 * (see `useActiveMessage`); until then Tab passes it by. On touch screens there is a sheet instead.
 */
export function MessageActions(props: ActionsProps) {
  return props.message.delivery === "sent" && <Toolbar {...props} />;
}

function Toolbar({ message, mine, first, pinned }: ActionsProps) {
  const client = useClient();
  const commands = useCommands(message);
  const isQuick = ({ label }: Command) => quick.includes(label);
  const look = pinned
    ? "group-data-active:bg-raised group-data-active:shadow-pop in-data-elsewhere:invisible"
    : "invisible bg-raised shadow-pop group-data-active:visible";
  return (
    <div
      role="toolbar"
      aria-label="Message actions"
      data-pinned={pinned || undefined}
      className={`absolute z-10 flex rounded-md pointer-coarse:hidden [&>button]:size-7 ${look} ${place(mine, first, message)}`}
    >
      <EmojiButton
        label="React"
        small
        onPick={(emoji) => void client.model.react(message.id, emoji).catch(showError)}
      />
      {commands.filter(isQuick).map(({ icon, label, onSelect }) => (
        <IconButton key={label} icon={icon} label={label} small onClick={onSelect} />
      ))}
      <Menu label="More" small items={commands.filter((command) => !isQuick(command))} />
    </div>
  );
}

/** One press away; the rest is in the menu. */
const quick = ["Stop", "Reply"];

/**
 * At the end of an agent's message, which may be long; beside a person's where there is room.
 * Otherwise above it: for one's own at the bubble, for others' at the end of the row, where it
 * leaves their name in sight.
 */
function place(mine: boolean, first: boolean, { sender }: LocalMessage): string {
  if (sender.kind === "agent") return "top-full -left-1.5";
  if (mine) return "-top-7 right-0 @3xl:top-0 @3xl:right-full @3xl:mr-2";
  return `${first ? "top-1" : "-top-3"} right-0 @3xl:top-0 @3xl:right-auto @3xl:left-full @3xl:ml-2`;
}

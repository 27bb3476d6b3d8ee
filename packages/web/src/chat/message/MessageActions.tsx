import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { EmojiButton } from "../../emoji/EmojiButton.tsx";
import { showError } from "../../lib/errors.ts";
import { IconButton } from "../../ui/Button.tsx";
import { Menu } from "../../ui/Menu.tsx";
import { useChatContext } from "../context.ts";
import { type Command, useCommands } from "./commands.ts";

interface ActionsProps {
  message: LocalMessage;
  mine: boolean;
  /** The name of the sender stands above the message. */
  first: boolean;
  /** The message ends a run of messages by one sender. */
  last: boolean;
  /** The toolbar is always visible: that of the latest answer. */
  pinned: boolean;
}

/**
 * The toolbar of a message. Visible only for the active message (see `useActiveMessage`); Tab skips the
 * others. Touch screens have a sheet instead.
 */
export function MessageActions(props: ActionsProps) {
  return props.message.delivery === "sent" && <Toolbar {...props} />;
}

function Toolbar(props: ActionsProps) {
  const { message, pinned } = props;
  const client = useClient();
  const { isReadOnly } = useChatContext();
  const commands = useCommands(message);
  const isQuick = ({ label }: Command) => quick.includes(label);
  const look = pinned
    ? "in-data-has-active:invisible group-data-active:visible! group-data-active:bg-raised group-data-active:shadow-pop"
    : "invisible bg-raised shadow-pop group-data-active:visible";
  return (
    <div className={`pointer-events-none absolute z-10 pointer-coarse:hidden ${position(props)}`}>
      <div
        role="toolbar"
        aria-label="Message actions"
        className={`pointer-events-auto sticky top-2 flex rounded-md [&>button]:size-7 ${look}`}
      >
        {!isReadOnly && (
          <EmojiButton
            label="React"
            small
            onPick={(emoji) => void client.model.react(message.id, emoji).catch(showError)}
          />
        )}
        {commands.filter(isQuick).map(({ icon, label, onSelect }) => (
          <IconButton key={label} icon={icon} label={label} small onClick={onSelect} />
        ))}
        <Menu label="More" small items={commands.filter((command) => !isQuick(command))} />
      </div>
    </div>
  );
}

/** Commands with a button of their own; the others are in the menu. */
const quick = ["Stop", "Reply"];

/**
 * Position: below an agent's message, which may be long; beside a person's where there is room. Otherwise
 * above it: at the bubble for one's own, at the end of the row for others', where it does not cover the
 * name. It stays in view while a long message is scrolled.
 */
function position({ mine, first, last, pinned, message }: ActionsProps): string {
  if (message.sender.kind === "agent") {
    return `top-full ${last ? "-left-1.5" : "right-0"} ${pinned ? "" : "-mt-1 max-md:-mt-2"}`;
  }
  if (mine) return "-top-7 right-0 bottom-0 @3xl:top-0 @3xl:right-full @3xl:mr-2";
  return `${first ? "top-1" : "-top-3"} right-0 bottom-0 @3xl:top-0 @3xl:right-auto @3xl:left-full @3xl:ml-2`;
}

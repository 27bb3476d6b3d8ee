import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useRef, useState } from "react";
import { EmojiPicker } from "../../emoji/EmojiPicker.tsx";
import { frequentEmojis } from "../../emoji/recent.ts";
import { messageLine } from "../../files/describe.ts";
import { showError } from "../../lib/errors.ts";
import { Icon } from "../../ui/Icon.tsx";
import { Sheet, SheetRow } from "../../ui/Sheet.tsx";
import { useChatContext } from "../context.ts";
import { useSenderName } from "../sender-names.ts";
import { useCommands } from "./commands.ts";

interface MessageSheetProps {
  message: LocalMessage;
  onClose: () => void;
}

/** The actions of a message as a sheet, after a long press. */
export function MessageSheet({ message, onClose }: MessageSheetProps) {
  const client = useClient();
  const { isReadOnly } = useChatContext();
  const speaker = useSenderName();
  const commands = useCommands(message);
  const more = useRef<HTMLButtonElement>(null);
  const [picking, setPicking] = useState(false);
  const react = (emoji: string) => {
    onClose();
    client.model.react(message.id, emoji).catch(showError);
  };
  return (
    <Sheet label="Message actions" onClose={onClose}>
      <p className="truncate px-3 pb-1 text-sm text-ink-3">
        {speaker(message.sender)}: {messageLine(message, 80)}
      </p>
      {!isReadOnly && (
        <div className="flex justify-between px-1 pb-1">
          {frequentEmojis(QUICK_EMOJIS).map((emoji) => (
            <button
              key={emoji}
              type="button"
              aria-label={`React with ${emoji}`}
              onClick={() => react(emoji)}
              className="inline-flex size-11 items-center justify-center rounded-full font-emoji text-xl active:bg-hover"
            >
              {emoji}
            </button>
          ))}
          <button
            ref={more}
            type="button"
            aria-label="React with another emoji"
            aria-haspopup="dialog"
            aria-expanded={picking}
            onClick={() => setPicking(true)}
            className="inline-flex size-11 items-center justify-center rounded-full bg-sunken text-ink-2 active:bg-hover"
          >
            <Icon name="plus" size={20} />
          </button>
        </div>
      )}
      {commands.map((command) => (
        <SheetRow
          key={command.label}
          {...command}
          onSelect={() => {
            onClose();
            command.onSelect();
          }}
        />
      ))}
      {picking && <EmojiPicker anchor={more} onClose={() => setPicking(false)} onPick={react} />}
    </Sheet>
  );
}

/** As many as fit in 360 px, beside the button for others. */
const QUICK_EMOJIS = 6;

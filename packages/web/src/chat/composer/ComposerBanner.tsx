import { messageLine } from "../../files/describe.ts";
import { IconButton } from "../../ui/Button.tsx";
import { Icon } from "../../ui/Icon.tsx";
import { Notice } from "../../ui/Notice.tsx";
import { useSenderName } from "../sender-names.ts";
import type { Writing } from "./writing.ts";

interface BannerProps {
  writing: Exclude<Writing, { kind: "new" }>;
  onCancel: () => void;
}

/** The message that is being answered or edited, and why the server refused an edit. */
export function ComposerBanner({ writing, onCancel }: BannerProps) {
  const speaker = useSenderName();
  const { message } = writing;
  const edit = writing.kind === "edit";
  const refused = edit ? writing.refused : undefined;
  return (
    <div className="flex items-center gap-3 border-b border-line py-1.5 pr-2 pl-4 text-sm">
      <span className="text-accent">
        <Icon name={edit ? "edit" : "reply"} size={15} />
      </span>
      <div className="min-w-0 flex-1">
        <p className="font-medium break-words">
          {edit ? "Editing your message" : `Replying to ${speaker(message.sender)}`}
        </p>
        <p dir="auto" className="truncate text-left text-ink-3">
          {messageLine(message, 120)}
        </p>
        {refused && <Notice>Not saved: {refused.reason}</Notice>}
      </div>
      <IconButton
        icon="close"
        label={edit ? "Stop editing" : "Do not reply"}
        small
        onClick={onCancel}
      />
    </div>
  );
}

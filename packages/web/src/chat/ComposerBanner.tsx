import { plainText } from "@parley/protocol/markup";
import { IconButton } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import type { Writing } from "./Composer.tsx";
import { useSpeaker } from "./speaker.ts";

interface BannerProps {
  writing: Exclude<Writing, { kind: "new" }>;
  onCancel: () => void;
}

/** Which message is being answered or changed. */
export function ComposerBanner({ writing, onCancel }: BannerProps) {
  const speaker = useSpeaker();
  const { message } = writing;
  const edit = writing.kind === "edit";
  return (
    <div className="flex items-center gap-3 border-b border-line py-1.5 pr-2 pl-4 text-sm">
      <span className="text-accent">
        <Icon name={edit ? "edit" : "reply"} size={15} />
      </span>
      <p className="min-w-0 flex-1">
        <span className="block font-medium break-words">
          {edit ? "Editing your message" : `Replying to ${speaker(message.sender)}`}
        </span>
        <span dir="auto" className="block truncate text-left text-ink-3">
          {plainText(message.content, 120)}
        </span>
      </p>
      <IconButton
        icon="close"
        label={edit ? "Stop editing" : "Do not reply"}
        small
        onClick={onCancel}
      />
    </div>
  );
}

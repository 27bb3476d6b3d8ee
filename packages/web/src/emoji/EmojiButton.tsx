import { useRef, useState } from "react";
import { IconButton } from "../ui/Button.tsx";
import { EmojiPicker } from "./EmojiPicker.tsx";

interface EmojiButtonProps {
  label: string;
  small?: boolean;
  className?: string;
  onPick: (emoji: string) => void;
}

/** A button that opens the emoji picker beside it. */
export function EmojiButton({ label, small = false, className = "", onPick }: EmojiButtonProps) {
  const button = useRef<HTMLButtonElement>(null);
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <IconButton
        ref={button}
        icon="smile"
        label={label}
        small={small}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
        className={className}
        onClick={() => setOpen(!isOpen)}
      />
      {isOpen && (
        <EmojiPicker
          anchor={button}
          onClose={() => setOpen(false)}
          onPick={(emoji) => {
            setOpen(false);
            onPick(emoji);
          }}
        />
      )}
    </>
  );
}

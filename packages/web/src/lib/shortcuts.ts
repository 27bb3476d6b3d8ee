import { useClient } from "@parley/client/react";
import { type RefObject, useEffect } from "react";
import { chatPath, navigate } from "./router.ts";

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The shortcuts as they are printed on the keyboard. */
export const keyNames = isApple
  ? { switcher: "⌘K", neighbours: "⌥ ↑ ↓" }
  : { switcher: "Ctrl K", neighbours: "Alt ↑ ↓" };

interface Shortcuts {
  /** The conversation in view. */
  open: string | null;
  onSwitch: () => void;
}

/** Keys that work everywhere: Ctrl or Cmd with K, and Alt with the arrows. */
export function useShortcuts({ open, onSwitch }: Shortcuts): void {
  const client = useClient();
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        onSwitch();
      } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        event.preventDefault();
        step(client.model.get("chats"), open, event.key === "ArrowUp" ? -1 : 1);
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [client, open, onSwitch]);
}

/** Text goes to the field from wherever nothing else takes it, as from a button just pressed. */
export function useTypingAnywhere(field: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey, altKey } = event;
      const isText = key.length === 1 && key !== " " && !(ctrlKey || metaKey || altKey);
      const taken = document.activeElement?.closest("input, textarea, select, dialog, [popover]");
      if (isText && !taken) field.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [field]);
}

function step(chats: readonly string[], open: string | null, by: number): void {
  const at = open === null ? -1 : chats.indexOf(open);
  const next = chats[Math.max(0, at + by)];
  if (next) navigate(chatPath(next));
}

import { useClient } from "@parley/client/react";
import { type RefObject, useLayoutEffect } from "react";
import { chatPath, navigate } from "./router.ts";

const isApple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** The shortcuts as they are printed on the keyboard. */
export const keyNames = isApple
  ? { switcher: "⌘K", neighbours: "⌥ ↑ ↓" }
  : { switcher: "Ctrl K", neighbours: "Alt ↑ ↓" };

interface Shortcuts {
  /** The open conversation. */
  open: string | null;
  onSwitch: () => void;
}

/**
 * Shortcuts that work everywhere but in dialogs, from the moment the page is shown: Ctrl or Cmd+K, and
 * Alt with an arrow.
 */
export function useShortcuts({ open, onSwitch }: Shortcuts): void {
  const client = useClient();
  useLayoutEffect(() => {
    const handleKey = (event: KeyboardEvent) => {
      const isInDialog = document.querySelector("dialog[open]") !== null;
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        if (!isInDialog) onSwitch();
      } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
        // Alt with an arrow opens a select.
        if (isInDialog || event.target instanceof HTMLSelectElement) return;
        event.preventDefault();
        openNeighbour(client.model.get("chats"), open, event.key === "ArrowUp" ? -1 : 1);
      }
    };
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  }, [client, open, onSwitch]);
}

/** Focuses the field when text is typed while no other field has the focus. */
export function useTypingAnywhere(field: RefObject<HTMLElement | null>): void {
  useLayoutEffect(() => {
    const handleKey = (event: KeyboardEvent) => {
      const { key, ctrlKey, metaKey, altKey } = event;
      const isText = key.length === 1 && key !== " " && !(ctrlKey || metaKey || altKey);
      const other = document.activeElement?.closest("input, textarea, select, dialog, [popover]");
      if (isText && !other) field.current?.focus();
    };
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  }, [field]);
}

function openNeighbour(chats: readonly string[], open: string | null, by: number): void {
  const at = open === null ? -1 : chats.indexOf(open);
  const next = chats[Math.max(0, at + by)];
  if (next) navigate(chatPath(next));
}

import { useClient } from "@parley/client/react";
import { useEffect } from "react";
import { chatPath, navigate } from "./router.ts";

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

function step(chats: readonly string[], open: string | null, by: number): void {
  const at = open === null ? -1 : chats.indexOf(open);
  const next = chats[Math.max(0, at + by)];
  if (next) navigate(chatPath(next));
}

import { useClient } from "@parley/client/react";
import type { Account, Message } from "@parley/protocol";
import { plainText } from "@parley/protocol/markup";
import { useEffect } from "react";
import { nameOf } from "./names.ts";
import { chatPath, navigate } from "./router.ts";

/** Tells of what happens while the person looks elsewhere, by notification. */
export function useNotifications(me: Account): void {
  const client = useClient();
  useEffect(() => {
    const watching = () => document.visibilityState === "visible" && document.hasFocus();
    const tell = (message: Message) => {
      if (message.sender.username === me.username || watching() || !notificationsOn()) return;
      notify(message);
    };
    const stops = [
      client.on("events.messageNew", ({ params }) => params.finalized_at && tell(params)),
      client.on("events.messageComplete", ({ params }) => tell(params)),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }, [client, me.username]);
}

const KEY = "parley.notifications";

export const notificationsOn = () =>
  "Notification" in window &&
  Notification.permission === "granted" &&
  localStorage.getItem(KEY) === "on";

/** True when they are on afterwards. */
export async function setNotifications(on: boolean): Promise<boolean> {
  localStorage.setItem(KEY, on ? "on" : "off");
  if (!on || !("Notification" in window)) return false;
  return (await Notification.requestPermission()) === "granted";
}

function notify({ sender, content, conversation_id }: Message): void {
  const path = chatPath(conversation_id);
  const options = { body: plainText(content, 140), tag: conversation_id, data: path };
  try {
    const notification = new Notification(nameOf(sender), options);
    notification.onclick = () => {
      window.focus();
      navigate(path);
      notification.close();
    };
  } catch {
    // Browsers of phones leave it to the service worker.
    void navigator.serviceWorker?.ready.then((worker) =>
      worker.showNotification(nameOf(sender), options),
    );
  }
}

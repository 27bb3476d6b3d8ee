import { useClient } from "@parley/client/react";
import type { Account, Message } from "@parley/protocol";
import { useEffect } from "react";
import { messageLine } from "../files/describe.ts";
import { isAmong } from "../lib/blocked.ts";
import { nameOf } from "../lib/names.ts";
import { notificationsOn } from "../lib/notifications.ts";
import { chatPath, navigate } from "../lib/router.ts";
import { isWatching, shareWatching } from "../lib/watching.ts";
import { callTitle, isPending } from "../tools/calls.ts";
import { waitsFor } from "../tools/pending.ts";

/** Shows a notification for each new message while the person looks at no tab of the client. */
export function useNotifications(me: Account): void {
  const client = useClient();
  useEffect(() => {
    const notifyIfAway = async (message: Message) => {
      if (message.sender.username === me.username || !notificationsOn()) return;
      if (isAmong(client.model.get("blocked"), message.sender)) return;
      if (!(await isWatching())) notify(message, me);
    };
    const unsubscribes = [
      client.on("events.messageNew", ({ params }) => {
        if (params.finalized_at && !params.imported) void notifyIfAway(params);
      }),
      client.on("events.messageComplete", ({ params }) => void notifyIfAway(params)),
      shareWatching(),
    ];
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }, [client, me]);
}

/** What waits for the person is named, and leads to its message. */
function notify(message: Message, me: Account): void {
  const { sender, conversation_id } = message;
  const isWaiting = waitsFor(message, me);
  const path = isWaiting ? chatPath(conversation_id, message.id) : chatPath(conversation_id);
  const asked = message.tool_calls.filter(isPending).map(callTitle);
  const body = isWaiting ? `Waits for you: ${asked.join(", ")}` : messageLine(message, 140, me);
  const options = { body, tag: conversation_id, data: path };
  try {
    const notification = new Notification(nameOf(sender), options);
    notification.onclick = () => {
      window.focus();
      navigate(path);
      notification.close();
    };
  } catch {
    // Browsers on phones allow notifications only from the service worker.
    void navigator.serviceWorker?.ready.then((worker) =>
      worker.showNotification(nameOf(sender), options),
    );
  }
}

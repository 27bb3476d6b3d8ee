import { useClient } from "@parley/client/react";
import { useEffect, useState } from "react";
import { connectionMessages, useConnection } from "../lib/connection.ts";
import { Icon } from "../ui/Icon.tsx";

/** Shorter interruptions are not shown. */
const SHOW_AFTER_MS = 1200;

/** A note over the page while there is no connection: the cause, and a button to reconnect. */
export function ConnectionBanner() {
  const client = useClient();
  const connection = useConnection();
  const isDown = connection !== "up";
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!isDown) return setShown(false);
    const timer = setTimeout(() => setShown(true), SHOW_AFTER_MS);
    return () => clearTimeout(timer);
  }, [isDown]);
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-0 top-17 z-40 flex justify-center px-3"
    >
      {shown && connection !== "up" && (
        <p className="pointer-events-auto flex animate-fade flex-wrap items-center justify-center gap-x-2 gap-y-0.5 rounded-lg bg-warn-soft px-4 py-1.5 text-sm text-warn shadow-pop">
          <Icon name={connection === "offline" ? "offline" : "alert"} size={15} />
          <span className="font-medium">{connectionMessages[connection]}</span>
          <span>What you write is kept, and sent later.</span>
          {connection === "unreachable" && (
            <button
              type="button"
              className="min-h-6 rounded-sm px-1 font-semibold underline underline-offset-2"
              onClick={() => client.reconnect()}
            >
              Retry
            </button>
          )}
        </p>
      )}
    </div>
  );
}

import { useStatus } from "@parley/client/react";
import { useEffect, useState } from "react";
import { Icon } from "../ui/Icon.tsx";

/** A hiccup of the connection is not worth a word. */
const PATIENCE_MS = 1200;

export function OfflineBanner() {
  const offline = useStatus() === "offline";
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!offline) return setShown(false);
    const timer = setTimeout(() => setShown(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [offline]);
  return (
    <div role="status">
      {shown && (
        <p className="flex animate-fade items-center justify-center gap-2 bg-warn-soft px-4 py-1.5 text-sm font-medium text-warn">
          <Icon name="offline" size={15} />
          You are offline. What you write is kept, and sent when you are back.
        </p>
      )}
    </div>
  );
}

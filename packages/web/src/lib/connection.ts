import { useStatus } from "@parley/client/react";
import { useSyncExternalStore } from "react";

/** `offline`: the device has no network. `unreachable`: it has one, but the server does not answer. */
export type Connection = "up" | "offline" | "unreachable";

export function useConnection(): Connection {
  const isDown = useStatus() === "offline";
  const hasNetwork = useSyncExternalStore(subscribe, () => navigator.onLine);
  if (!isDown) return "up";
  return hasNetwork ? "unreachable" : "offline";
}

function subscribe(listener: () => void): () => void {
  for (const event of ["online", "offline"]) addEventListener(event, listener);
  return () => {
    for (const event of ["online", "offline"]) removeEventListener(event, listener);
  };
}

export const connectionMessages = {
  offline: "You are offline.",
  unreachable: "The server cannot be reached.",
} as const;

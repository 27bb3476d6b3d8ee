import { useClient } from "@parley/client/react";
import { useCallback } from "react";
import { deviceName } from "../lib/devices.ts";
import { showError } from "../lib/errors.ts";
import { useFetched } from "../lib/fetched.ts";
import { fullTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";

export function Sessions() {
  const client = useClient();
  const sessions = useFetched(useCallback(() => client.getSessions(), [client]));
  if (!sessions.value) return <Unfetched fetched={sessions} className="h-16" />;
  return (
    <ul className="flex flex-col divide-y divide-line">
      {sessions.value.items.map(({ id, user_agent, last_used_at, current }) => (
        <li key={id} className="flex items-center gap-3 py-2.5 first:pt-0 last:pb-0">
          <span className="min-w-0 flex-1">
            <span className="block text-base font-medium break-words">
              {deviceName(user_agent)}
            </span>
            <span className="block text-sm text-ink-3">
              {current ? "This device" : `Last used ${fullTime(last_used_at)}`}
            </span>
          </span>
          {!current && (
            <Button
              size="small"
              onClick={() =>
                client.revokeSession({ session_id: id }).then(sessions.fetchAgain, showError)
              }
            >
              Sign out
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

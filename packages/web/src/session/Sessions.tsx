import { useClient } from "@parley/client/react";
import type { Session } from "@parley/protocol";
import { useCallback, useEffect, useState } from "react";
import { deviceName } from "../lib/devices.ts";
import { showError } from "../lib/errors.ts";
import { fullTime } from "../lib/time.ts";
import { Button } from "../ui/Button.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

export function Sessions() {
  const client = useClient();
  const [sessions, setSessions] = useState<Session[] | null>(null);
  const load = useCallback(
    () => client.getSessions().then(({ items }) => setSessions(items), showError),
    [client],
  );
  useEffect(() => {
    void load();
  }, [load]);
  if (!sessions) return <Skeleton className="h-16" />;
  return (
    <ul className="flex flex-col divide-y divide-line">
      {sessions.map(({ id, user_agent, last_used_at, current }) => (
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
              onClick={() => client.revokeSession({ session_id: id }).then(load, showError)}
            >
              Sign out
            </Button>
          )}
        </li>
      ))}
    </ul>
  );
}

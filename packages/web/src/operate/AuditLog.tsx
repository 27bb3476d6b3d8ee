import { useClient } from "@parley/client/react";
import type { AuditAction, AuditEntry } from "@parley/protocol";
import { auditActions } from "@parley/protocol/records/audit-actions";
import { useCallback } from "react";
import { dayLabel } from "../lib/time.ts";
import { AuditFilter } from "./AuditFilter.tsx";
import { AuditRow } from "./AuditRow.tsx";
import { useListing } from "./calls.ts";
import { ListFrame } from "./ListFrame.tsx";

/** What happened that concerns security, newest first. */
export function AuditLog({ filter }: { filter: URLSearchParams }) {
  const client = useClient();
  const action = auditActions.find((each) => each === filter.get("action"));
  const account = filter.get("account") ?? "";
  const since = filter.get("since") ?? "";
  const load = useCallback(
    (place: { cursor?: string }) =>
      client.getAuditLog({ ...inputOf(action, account, since), ...place }),
    [client, action, account, since],
  );
  const listing = useListing(load);
  const isFiltered = action !== undefined || account !== "" || since !== "";
  return (
    <section aria-labelledby="audit-heading" className="flex flex-col gap-4">
      <h2 id="audit-heading" className="sr-only">
        Audit log
      </h2>
      <AuditFilter
        key={filter.toString()}
        values={{ action: action ?? "", account, since }}
        busy={listing.busy}
        onRefresh={listing.reload}
      />
      <ListFrame
        listing={listing}
        empty={isFiltered ? "No entry matches." : "Nothing has happened yet."}
      >
        {byDay(listing.items ?? []).map(({ day, entries }) => (
          <div key={day} className="flex flex-col gap-2">
            <h3 className="text-sm font-semibold text-ink-2">{day}</h3>
            <ol className="flex flex-col divide-y divide-line rounded-lg border border-line bg-surface px-4 shadow-low">
              {entries.map((entry) => (
                <AuditRow key={entry.id} entry={entry} />
              ))}
            </ol>
          </div>
        ))}
      </ListFrame>
    </section>
  );
}

function inputOf(action: AuditAction | undefined, account: string, since: string) {
  const start = new Date(`${since}T00:00`);
  return {
    ...(action && { action }),
    ...(account !== "" && { account }),
    ...(!Number.isNaN(start.getTime()) && { since: start.toISOString() }),
  };
}

/** The entries of each day, which is named as between messages. */
function byDay(entries: readonly AuditEntry[]) {
  const days: { day: string; entries: AuditEntry[] }[] = [];
  for (const entry of entries) {
    const day = dayLabel(entry.at);
    const last = days.at(-1);
    if (last?.day === day) last.entries.push(entry);
    else days.push({ day, entries: [entry] });
  }
  return days;
}

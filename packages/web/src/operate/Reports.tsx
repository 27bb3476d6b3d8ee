import { useClient } from "@parley/client/react";
import { useCallback } from "react";
import { navigate, operatePath } from "../lib/router.ts";
import { Choice } from "../ui/Choice.tsx";
import { useListing } from "./calls.ts";
import { ListFrame } from "./ListFrame.tsx";
import { ReportCard } from "./ReportCard.tsx";

const kinds = [
  { value: "open", label: "Open" },
  { value: "resolved", label: "Resolved" },
] as const;

/** Messages that people reported: to look at them, and to resolve the reports. */
export function Reports({ filter }: { filter: URLSearchParams }) {
  const client = useClient();
  const show = filter.get("show") === "resolved" ? "resolved" : "open";
  const load = useCallback(
    (place: { cursor?: string }) =>
      client.getReports({ resolved: show === "resolved", limit: 20, ...place }),
    [client, show],
  );
  const listing = useListing(load);
  return (
    <section aria-labelledby="reports-heading" className="flex flex-col gap-4">
      <h2 id="reports-heading" className="sr-only">
        Reports
      </h2>
      <Choice
        label="Which reports"
        value={show}
        options={kinds}
        onChange={(value) =>
          navigate(operatePath("reports", { show: value === "open" ? "" : value }), {
            replace: true,
          })
        }
      />
      <p className="text-sm text-ink-3">
        You see the reported message and up to five around it, and nothing else of the conversation.
      </p>
      <ListFrame
        listing={listing}
        empty={show === "open" ? "No report is open." : "No report has been resolved."}
      >
        <ul className="flex flex-col gap-4">
          {listing.items?.map((report) => (
            <ReportCard
              key={report.id}
              report={report}
              onChange={(changed) =>
                listing.setItems((items) =>
                  items.map((each) => (each.id === changed.id ? changed : each)),
                )
              }
            />
          ))}
        </ul>
      </ListFrame>
    </section>
  );
}

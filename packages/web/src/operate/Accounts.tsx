import { useClient } from "@parley/client/react";
import { useCallback } from "react";
import { navigate, operatePath } from "../lib/router.ts";
import { Choice } from "../ui/Choice.tsx";
import { TextField } from "../ui/Field.tsx";
import { AccountRow } from "./AccountRow.tsx";
import { useListing } from "./calls.ts";
import { ListFrame } from "./ListFrame.tsx";

const kinds = [
  { value: "", label: "All" },
  { value: "active", label: "Not suspended" },
  { value: "suspended", label: "Suspended" },
] as const;

/** The accounts of people: to find one, and to suspend or restore it. */
export function Accounts({ filter }: { filter: URLSearchParams }) {
  const query = filter.get("query") ?? "";
  const show = kinds.find(({ value }) => value === filter.get("show"))?.value ?? "";
  const listing = useAccounts(query.trim(), show);
  const change = (changed: { query?: string; show?: string }) =>
    navigate(operatePath("accounts", { query, show, ...changed }), { replace: true });
  return (
    <section aria-labelledby="accounts-heading" className="flex flex-col gap-4">
      <h2 id="accounts-heading" className="sr-only">
        Accounts
      </h2>
      <div className="flex flex-col gap-3">
        <TextField
          label="Find accounts"
          type="search"
          value={query}
          maxLength={128}
          autoComplete="off"
          hint="The beginning of a name or username, or a whole external id."
          onChange={(event) => change({ query: event.target.value })}
        />
        <Choice
          label="Which accounts"
          value={show}
          options={kinds}
          onChange={(value) => change({ show: value })}
        />
      </div>
      <ListFrame listing={listing} empty={emptyText(query, show)}>
        <ul className="flex flex-col divide-y divide-line rounded-lg border border-line bg-surface px-4 shadow-low">
          {listing.items?.map((account) => (
            <AccountRow
              key={account.username}
              account={account}
              onChange={(changed) =>
                listing.setItems((items) =>
                  items.map((each) => (each.username === changed.username ? changed : each)),
                )
              }
              onErased={() =>
                listing.setItems((items) =>
                  items.filter(({ username }) => username !== account.username),
                )
              }
            />
          ))}
        </ul>
      </ListFrame>
    </section>
  );
}

function useAccounts(query: string, show: string) {
  const client = useClient();
  const load = useCallback(
    (place: { cursor?: string }) =>
      client.getAccounts({
        ...(query !== "" && { query: query.replace(/^@/, "") }),
        ...(show !== "" && { suspended: show === "suspended" }),
        ...place,
      }),
    [client, query, show],
  );
  return useListing(load);
}

function emptyText(query: string, show: string): string {
  if (query.trim() !== "") return `No account matches «${query.trim()}».`;
  return show === "suspended" ? "No account is suspended." : "There are no accounts.";
}

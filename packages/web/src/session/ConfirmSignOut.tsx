import { useClient } from "@parley/client/react";
import { count } from "../lib/names.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { leave, unsentAtSignOut } from "./client.ts";

/** Asks before signing out deletes unsent messages or drafts. */
export function ConfirmSignOut() {
  const client = useClient();
  const unsent = unsentAtSignOut.use();
  if (!unsent) return null;
  const { messages, drafts } = unsent;
  const parts = [
    messages > 0 && count(messages, "message"),
    drafts > 0 && count(drafts, "draft"),
  ].filter(Boolean);
  const isOne = messages + drafts === 1;
  return (
    <Confirm
      title="Sign out?"
      back="Stay signed in"
      action="Sign out"
      onBack={() => unsentAtSignOut.set(null)}
      onConfirm={() => void leave(client)}
    >
      {parts.join(" and ")} of yours {isOne ? "is" : "are"} not sent yet. Signing out deletes{" "}
      {isOne ? "it" : "them"}, in all tabs.
    </Confirm>
  );
}

import { useClient } from "@parley/client/react";
import { count } from "../lib/names.ts";
import { Confirm } from "../ui/Confirm.tsx";
import { leave, unsentAtSignOut } from "./client.ts";

/** Asks before signing out deletes unsent messages. */
export function ConfirmSignOut() {
  const client = useClient();
  const unsent = unsentAtSignOut.use();
  if (unsent === 0) return null;
  return (
    <Confirm
      title="Sign out?"
      back="Stay signed in"
      action="Sign out"
      onBack={() => unsentAtSignOut.set(0)}
      onConfirm={() => void leave(client)}
    >
      {count(unsent, "message")} of yours {unsent === 1 ? "is" : "are"} not sent yet. Signing out
      deletes {unsent === 1 ? "it" : "them"}, in all tabs.
    </Confirm>
  );
}

import { useClient } from "@parley/client/react";
import type { AddedBy as Value } from "@parley/protocol";
import { useCallback } from "react";
import { showError } from "../lib/errors.ts";
import { useFetched } from "../lib/fetched.ts";
import { Choice } from "../ui/Choice.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";

const options = [
  { value: "everyone", label: "Everyone", hint: "Anybody can write to you or add you to a group." },
  {
    value: "known",
    label: "People I know",
    hint: "Only people with whom you have a conversation in which you have written.",
  },
] as const;

/** Who may start conversations with the person, or add them to groups. */
export function AddedBy() {
  const client = useClient();
  const fetched = useFetched(
    useCallback(async () => (await client.getMe()).added_by ?? "everyone", [client]),
  );
  const { value, change } = fetched;
  if (value === null) return <Unfetched fetched={fetched} className="h-15" />;
  const choose = (added_by: Value) => {
    change(() => added_by);
    client.updateMe({ added_by }).catch((error) => {
      change(() => value);
      showError(error);
    });
  };
  return <Choice label="Who may add me" value={value} options={options} onChange={choose} />;
}

import { useClient } from "@parley/client/react";
import type { AddedBy as Value } from "@parley/protocol";
import { useEffect, useState } from "react";
import { showError } from "../lib/errors.ts";
import { Choice } from "../ui/Choice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";

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
  const [value, setValue] = useState<Value | null>(null);
  useEffect(() => {
    client.getMe().then(({ added_by = "everyone" }) => setValue(added_by), showError);
  }, [client]);
  if (value === null) return <Skeleton className="h-15" />;
  const change = (added_by: Value) => {
    setValue(added_by);
    client.updateMe({ added_by }).catch((error) => {
      setValue(value);
      showError(error);
    });
  };
  return <Choice label="Who may add me" value={value} options={options} onChange={change} />;
}

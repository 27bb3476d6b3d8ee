import { useClient } from "@parley/client/react";
import { useEffect, useState } from "react";

/** Whether the person signs in with a password; assumed until the server answers. */
export function useHasPassword(): boolean {
  const client = useClient();
  const [hasPassword, setHasPassword] = useState(true);
  useEffect(() => {
    // A second factor is only for people with a password.
    client.getSecondFactor().then(
      ({ available, enabled }) => setHasPassword(available || enabled),
      () => setHasPassword(true),
    );
  }, [client]);
  return hasPassword;
}

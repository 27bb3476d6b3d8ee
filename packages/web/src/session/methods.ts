import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useEffect, useState } from "react";

export type SignInMethods = OutputOf<"getSignInMethods">;

const KEY = "parley.sign-in-methods";
/** Shown if the server does not answer. */
const DEFAULTS: SignInMethods = { password: true, sign_up: "open", oidc: null };

/** How people sign in to this server: as it was at the last visit, until the server answers. */
export function useSignInMethods(): SignInMethods | null {
  const client = useClient();
  const [methods, setMethods] = useState(storedMethods);
  useEffect(() => {
    client.getSignInMethods().then(
      (found) => {
        localStorage.setItem(KEY, JSON.stringify(found));
        setMethods((known) => (JSON.stringify(known) === JSON.stringify(found) ? known : found));
      },
      () => setMethods((known) => known ?? DEFAULTS),
    );
  }, [client]);
  return methods;
}

function storedMethods(): SignInMethods | null {
  const stored = localStorage.getItem(KEY);
  return stored === null ? null : (JSON.parse(stored) as SignInMethods);
}

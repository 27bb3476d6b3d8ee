import { useClient } from "@parley/client/react";
import { useAction } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Notice } from "../ui/Notice.tsx";
import { describeProblem, startOidcSignIn } from "./oidc.ts";

/** «Sign in with …»: leads to the sign-in page of the OpenID Connect issuer. */
export default function OidcButton({ name, isOnly }: { name: string; isOnly: boolean }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <div className="flex flex-col gap-3">
      <Button
        look={isOnly ? "primary" : "secondary"}
        icon="key"
        busy={busy}
        onClick={() => void run(() => startOidcSignIn(client))}
      >
        <span className="min-w-0 truncate">Sign in with {name}</span>
      </Button>
      {error !== null && <Notice>{describeProblem(error)}</Notice>}
      {!isOnly && (
        <p className="flex items-center gap-3 text-sm text-ink-3">
          <span className="h-px flex-1 bg-line" />
          or with a password
          <span className="h-px flex-1 bg-line" />
        </p>
      )}
    </div>
  );
}

import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { openSession } from "../domain/sessions.ts";
import { Failure, notFound } from "../rules/failure.ts";
import type { OidcSignIn } from "../security/oidc-sign-in.ts";

type Needs = "config" | "oidcAccounts" | "oidcSignIn" | "audit" | "vault";
export const signIn = createResource<Needs>();

signIn.handle(operations.getSignInMethods, async ({ config }) => {
  const { passwordSignIn: password, signUp, oidc } = config;
  const name = oidc?.client?.name;
  return {
    password,
    sign_up: password ? signUp.kind : "closed",
    oidc: name === undefined ? null : { name },
  };
});

signIn.handle(operations.startOidcSignIn, async ({ oidcSignIn, origin }, input) =>
  configured(oidcSignIn).start(origin.base ?? "", input),
);

signIn.handle(operations.finishOidcSignIn, async (context, answer) => {
  const { oidcAccounts, oidcSignIn, origin } = context;
  try {
    const identity = await configured(oidcSignIn).finish(answer);
    return await oidcAccounts.signIn(identity, origin, async (tx, account) => {
      const { signedIn, session_id } = await openSession(tx, account, context, {});
      return { session_id, result: signedIn };
    });
  } catch (error) {
    recordFailure(context, error);
    throw error;
  }
});

function configured(signIn: OidcSignIn | null): OidcSignIn {
  if (!signIn) throw notFound("issuer to sign in with");
  return signIn;
}

/** Anybody can cause a failure at will, without an account. */
function recordFailure({ audit, origin }: Context<Needs, undefined>, error: unknown): void {
  if (!(error instanceof Failure) || error.code === "not_found") return;
  const details = { origin, method: "oidc" } as const;
  const { network } = origin;
  if (error.code === "unauthorized") audit.recordOnce("sign_in_failed", network, details);
  if (error.code === "suspended") {
    const suspended = { ...details, reason: "suspended" } as const;
    audit.recordOnce("sign_in_failed", `${network} suspended`, suspended);
  }
}

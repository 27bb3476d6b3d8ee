import type { Client } from "@parley/client";
import { showError } from "../lib/errors.ts";
import { navigate, settingsPath } from "../lib/router.ts";
import { sharedValue } from "../lib/shared-value.ts";

interface Return {
  /** The page that is shown afterwards, unless another one is. */
  to: string;
  finish: (client: Client, answer: URLSearchParams) => Promise<void>;
}

/** The pages to which other services send the browser back. What they need is loaded there only. */
const returns: Record<string, Return> = {
  "/sign-in": {
    to: "/",
    finish: async (...args) => (await import("./oidc.ts")).finishOidcSignIn(...args),
  },
  "/oauth/tool-servers/callback": {
    to: settingsPath("tool-servers"),
    finish: async (...args) =>
      (await import("../tools/authorization.ts")).finishToolServer(...args),
  },
};

/** Whether a sign-in, or the authorization of a tool server, is being finished. */
export const isFinishing = sharedValue(false);

/** Finishes what another service has answered, if the address contains its answer. */
export async function finishReturn(client: Client): Promise<void> {
  const found = returns[location.pathname];
  if (!found) return;
  const answer = new URLSearchParams(location.search);
  // The address with the code must not stay in the history.
  navigate(found.to, { replace: true });
  if (answer.size === 0) return;
  isFinishing.set(true);
  await found.finish(client, answer).catch(showError);
  isFinishing.set(false);
}

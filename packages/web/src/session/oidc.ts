import { type Client, isCallError } from "@parley/client";
import { codeOf, describeError } from "../lib/errors.ts";
import { navigate } from "../lib/router.ts";
import { toast } from "../lib/toasts.ts";
import { rememberSignIn, signInNotice } from "./client.ts";

const PREFIX = "parley.oidc.";
/** Sign-ins that were begun longer ago are forgotten. The server accepts them for a shorter time. */
const FORGET_MS = 60 * 60_000;

/** A sign-in that this browser has begun. It is stored under the `state` that the issuer sends back. */
interface BegunSignIn {
  flow: string;
  /** The page to return to. */
  path: string;
  at: number;
}

/** Leaves the page for the sign-in page of the issuer. `again`: also of somebody who is signed in there. */
export async function startOidcSignIn(
  client: Client,
  input: { again?: boolean } = {},
): Promise<void> {
  const { authorization_url, flow } = await client.startOidcSignIn(input);
  const state = new URL(authorization_url).searchParams.get("state") ?? "";
  const path = location.pathname.replace(/^\/+/, "/") + location.hash;
  const begun: BegunSignIn = { flow, path, at: Date.now() };
  forgetOldSignIns();
  localStorage.setItem(PREFIX + state, JSON.stringify(begun));
  location.assign(authorization_url);
}

/** Finishes a sign-in with the answer of the issuer. */
export async function finishOidcSignIn(client: Client, answer: URLSearchParams): Promise<void> {
  try {
    await finish(client, answer);
  } catch (error) {
    const problem = describeProblem(error);
    // Otherwise the browser is signed in already, and shows no sign-in page.
    if (client.status === "signed_out") signInNotice.set(problem);
    else toast(problem, "danger");
  }
}

async function finish(client: Client, answer: URLSearchParams): Promise<void> {
  const state = answer.get("state") ?? "";
  const begun = takeSignIn(state);
  // Somebody else may have made the address, to sign this browser in to an account of theirs.
  if (!begun) throw new Error("This sign-in was not begun in this browser.");
  const code = answer.get("code");
  if (code === null) throw new Error(refusals[answer.get("error") ?? ""] ?? refusals.other);
  const iss = answer.get("iss");
  const entered = await client.enter("finishOidcSignIn", {
    flow: begun.flow,
    state,
    code,
    ...(iss !== null && { iss }),
  });
  rememberSignIn(entered);
  navigate(begun.path, { replace: true });
}

/** What the issuer answers instead of a code. Its own description is not shown: it may be forged. */
const refusals: Record<string, string> & { other: string } = {
  access_denied: "The sign-in was cancelled.",
  temporarily_unavailable: "The sign-in service is not available.",
  other: "The sign-in service refused the sign-in.",
};

/** A sign-in can be finished once. */
function takeSignIn(state: string): BegunSignIn | null {
  const stored = localStorage.getItem(PREFIX + state);
  localStorage.removeItem(PREFIX + state);
  return stored === null ? null : (JSON.parse(stored) as BegunSignIn);
}

function forgetOldSignIns(): void {
  for (const key of Object.keys(localStorage).filter((each) => each.startsWith(PREFIX))) {
    const { at } = JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<BegunSignIn>;
    if (at === undefined || Date.now() - at > FORGET_MS) localStorage.removeItem(key);
  }
}

/** The server's reason, as a sentence: «The sign-in took too long. Please try again.» */
export function describeProblem(error: unknown): string {
  const isAnswer =
    codeOf(error) === "unauthorized" ||
    (isCallError(error) && error.code === "unavailable" && error.retryAfter !== undefined);
  return isAnswer ? `${describeError(error)}. Please try again.` : describeError(error);
}

import { type Client, isCallError } from "@parley/client";
import { codeOf, describeError } from "../lib/errors.ts";
import { toast } from "../lib/toasts.ts";
import { signInNotice } from "../session/client.ts";

const NOBODY =
  "The tool server was not authorized: nobody is signed in here. Sign in, and begin its authorization again.";
const SOMEBODY_ELSE =
  "The tool server was not authorized: another person began this. If somebody sent you the link, they wanted access to your account.";

/**
 * Ends the authorization of a tool server with the answer of the authorization server: as the person
 * who is signed in, so that nobody authorizes the server of somebody else.
 */
export async function finishToolServer(client: Client, answer: URLSearchParams): Promise<void> {
  if (client.token === null) return signInNotice.set(NOBODY);
  try {
    await finish(client, answer);
  } catch (error) {
    if (codeOf(error) === "unauthorized") signInNotice.set(NOBODY);
    else toast(describeProblem(error), "danger");
  }
}

function describeProblem(error: unknown): string {
  if (codeOf(error) === "forbidden") return SOMEBODY_ELSE;
  return isCallError(error) && error.code === "conflict"
    ? `The tool server was not authorized: ${error.reason}.`
    : describeError(error);
}

async function finish(client: Client, answer: URLSearchParams): Promise<void> {
  const [state, code, iss] = ["state", "code", "iss"].map((name) => answer.get(name) ?? "");
  const { name, status, error } = await client.finishToolServer({
    state: state ?? "",
    ...(code && { code }),
    ...(iss && { iss }),
  });
  // What the authorization server says about an error is not shown: it may be forged.
  if (!code) toast(`${name} was not authorized.`, "danger");
  else if (status === "ready")
    toast(`${name} is authorized. Your agents can be granted its tools.`);
  else toast(`${name} is authorized, but cannot be used. ${error}`, "danger");
}

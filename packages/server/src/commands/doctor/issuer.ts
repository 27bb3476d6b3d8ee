import { z } from "zod";
import type { Config } from "../../config/config.ts";
import type { OidcClient, OidcSettings } from "../../config/oidc.ts";
import { isTamperProof } from "../../rules/addresses.ts";
import { reasonOf } from "../output.ts";
import { type Check, failed, ok, warning } from "./check.ts";
import { ask } from "./network.ts";

const NAME = "OIDC issuer";
const CLIENT = "OIDC client";

/** The part of the discovery document that a sign-in in the web client needs. */
const Discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.string().optional(),
  token_endpoint: z.string().optional(),
  code_challenge_methods_supported: z.array(z.string()).optional(),
  scopes_supported: z.array(z.string()).optional(),
  claims_supported: z.array(z.string()).optional(),
});
type Discovery = z.infer<typeof Discovery>;

export async function checkIssuer({ oidc }: Config): Promise<Check[]> {
  if (!oidc) return [];
  const url = `${oidc.issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  try {
    const response = await ask(url);
    if (!response.ok) throw new Error(`status ${response.status}`);
    const found = Discovery.parse(await response.json());
    if (found.issuer !== oidc.issuer) {
      const todo = `Set PARLEY_OIDC_ISSUER to exactly "${found.issuer}", if that is your issuer.`;
      return [failed(NAME, `${url} names another issuer`, todo)];
    }
    const answers = ok(NAME, `${oidc.issuer} answers`);
    return oidc.client ? [answers, ...checkClient(oidc, oidc.client, found)] : [answers];
  } catch (error) {
    const todo = "Check PARLEY_OIDC_ISSUER, and allow outgoing connections to it.";
    return [failed(NAME, `${url} cannot be read: ${reasonOf(error)}`, todo)];
  }
}

function checkClient(
  { usernameClaim }: OidcSettings,
  { id, scopes }: OidcClient,
  found: Discovery,
): Check[] {
  const endpoints = ["authorization_endpoint", "token_endpoint"] as const;
  const missing = endpoints.filter((name) => !isTamperProof(found[name] ?? ""));
  if (missing.length > 0) {
    const message = `the issuer has no https address for its ${missing.join(" and ")}`;
    return [failed(CLIENT, message, "Let the issuer offer the authorization code flow.")];
  }
  const warnings: Check[] = [];
  const { code_challenge_methods_supported: methods } = found;
  if (methods && !methods.includes("S256")) {
    const todo = "Allow PKCE with S256 at the issuer, or sign-ins may fail.";
    warnings.push(warning(CLIENT, "the issuer does not name S256 for PKCE", todo));
  }
  const unknown = scopes.split(" ").filter((each) => lacks(found.scopes_supported, each));
  if (unknown.length > 0) {
    const todo = "Correct PARLEY_OIDC_SCOPES, or sign-ins may fail.";
    warnings.push(
      warning(CLIENT, `the issuer does not name the scope ${unknown.join(", ")}`, todo),
    );
  }
  if (lacks(found.claims_supported, usernameClaim)) {
    const todo = "Set PARLEY_OIDC_USERNAME_CLAIM to a claim that it sends.";
    warnings.push(warning(CLIENT, `the issuer does not name the claim ${usernameClaim}`, todo));
  }
  const message = `${id}; register its redirect URI: the public address of this server and /sign-in`;
  return warnings.length > 0 ? warnings : [ok(CLIENT, message)];
}

/** A list that the issuer leaves out tells nothing. */
const lacks = (list: readonly string[] | undefined, value: string) =>
  list !== undefined && !list.includes(value);

export function checkSignIn({ passwordSignIn, oidc }: Config): Check[] {
  if (passwordSignIn || oidc?.client) return [];
  const todo =
    "Set PARLEY_OIDC_CLIENT_ID, unless people come only with tokens that a service key issues.";
  return [warning("sign-in", "the web client offers no way to sign in", todo)];
}

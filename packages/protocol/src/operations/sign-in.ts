import { z } from "zod";
import { operation } from "../operation.ts";
import { SignedIn } from "../records.ts";
import { text } from "../text/fields.ts";

export const getSignInMethods = operation({
  name: "getSignInMethods",
  socket: "auth.methods",
  summary: "Tells how people sign in to this server, for a sign-in page.",
  access: "public",
  output: z.object({
    password: z.boolean().meta({ description: "Whether people sign in with a password." }),
    sign_up: z.enum(["open", "invite", "closed"]).meta({
      description: "Who may sign up with a password: anybody, or with a code, or nobody.",
    }),
    oidc: z
      .object({ name: z.string().meta({ description: "The name of the issuer, for a button." }) })
      .nullable()
      .meta({ description: "The OpenID Connect issuer to sign in with." }),
  }),
});

export const startOidcSignIn = operation({
  name: "startOidcSignIn",
  socket: "auth.oidc_start",
  summary:
    "Begins a sign-in with the OpenID Connect issuer in a browser. The issuer sends the browser back to `/sign-in`, with the parameters of `finishOidcSignIn`.",
  access: "public",
  input: z.object({
    again: z.boolean().optional().meta({
      description:
        "True: the issuer asks the person to sign in even if they are signed in there, as after `confirmation_required`.",
    }),
  }),
  output: z.object({
    authorization_url: z.string().meta({
      description: "Where the browser goes next. Its parameter `state` identifies the sign-in.",
    }),
    flow: z.string().meta({
      description: "The state of the sign-in, encrypted. Keep it in the browser for the next step.",
    }),
  }),
  errors: ["not_found"],
});

export const finishOidcSignIn = operation({
  name: "finishOidcSignIn",
  socket: "auth.oidc_finish",
  summary:
    "Exchanges the answer of the OpenID Connect issuer for an access token. Creates the account of a person who signs in for the first time.",
  access: "public",
  input: z.object({
    flow: text(1, 2048).meta({ description: "As `startOidcSignIn` returned it." }),
    state: text(1, 512),
    code: text(1, 4096),
    iss: text(1, 2048).optional().meta({ description: "Required if the issuer sent it." }),
  }),
  output: SignedIn,
  errors: ["not_found", "unauthorized", "suspended"],
});

import { z } from "zod";
import { operation } from "../operation.ts";
import { SecondFactor } from "../records.ts";
import { text } from "../text/fields.ts";

const password = text(1, 1024);

/** A code of the second factor, as people type it. */
export const secondFactorCode = text(1, 64).meta({
  description:
    "The six digits that the app shows, or a recovery code. Each is accepted once. Spaces and hyphens do not matter.",
  examples: ["492039"],
});

const appCode = text(1, 64).meta({
  description: "The six digits that the app shows.",
  examples: ["492039"],
});

const recovery_codes = z.array(z.string()).meta({
  description: "Ten codes, shown only here. Each replaces the app once, when it is lost.",
  examples: [["k3vd-7yqa-mh2x-u5pe"]],
});

export const getSecondFactor = operation({
  name: "getSecondFactor",
  socket: "auth.second_factor",
  summary: "Shows whether signing in to the caller's account needs a second factor.",
  output: SecondFactor,
});

export const beginSecondFactor = operation({
  name: "beginSecondFactor",
  socket: "auth.begin_second_factor",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary:
    "Returns a new secret for an authenticator app. It has no effect until `confirmSecondFactor`.",
  input: z.object({ password }),
  output: z.object({
    secret: z
      .string()
      .meta({ description: "In base32.", examples: ["JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"] }),
    otpauth_uri: z.string().meta({
      description: "The secret in the form that apps read from a QR code.",
      examples: [
        "otpauth://totp/Parley:ada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Parley&algorithm=SHA1&digits=6&period=30",
      ],
    }),
  }),
  errors: ["forbidden", "conflict"],
});

export const confirmSecondFactor = operation({
  name: "confirmSecondFactor",
  socket: "auth.confirm_second_factor",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary:
    "Turns the second factor on with a first code of the app, and ends all of the caller's other sessions.",
  input: z.object({ code: appCode }),
  output: z.object({ recovery_codes }),
  errors: ["forbidden", "not_found", "conflict"],
});

export const renewRecoveryCodes = operation({
  name: "renewRecoveryCodes",
  socket: "auth.renew_recovery_codes",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary: "Replaces the recovery codes with ten new ones.",
  input: z.object({ password, code: secondFactorCode }),
  output: z.object({ recovery_codes }),
  errors: ["forbidden", "not_found"],
});

export const removeSecondFactor = operation({
  name: "removeSecondFactor",
  socket: "auth.remove_second_factor",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary: "Turns the second factor off.",
  input: z.object({ password, code: secondFactorCode }),
  errors: ["forbidden", "not_found"],
});

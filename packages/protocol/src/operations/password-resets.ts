import { z } from "zod";
import { operation } from "../operation.ts";
import { text, timestamp, username } from "../text/fields.ts";
import { newPassword } from "./sessions.ts";

const token = text(1, 128).meta({ description: "What follows `#` in a reset link: `plr_…`." });

export const createPasswordReset = operation({
  name: "createPasswordReset",
  socket: "operators.create_password_reset",
  sensitive: true,
  summary:
    "Creates a link with which a person sets a new password, in place of an earlier link. It works once, within a day. `conflict` for an account that has no password or is suspended, and for an operator.",
  access: "operator",
  input: z.object({ username }),
  output: z.object({
    url: z.string().meta({
      description:
        "A page of the web client, with the token after `#`, so that no log has it. It is returned only here.",
    }),
    expires_at: timestamp,
  }),
  errors: ["not_found", "conflict"],
});

export const getPasswordReset = operation({
  name: "getPasswordReset",
  socket: "auth.password_reset",
  throttles: [{ name: "reset_tokens", of: "Each `token` that does not work" }],
  summary:
    "Tells whose password a reset link sets. `not_found` for every token that does not work: unknown, used, expired, or of a suspended account.",
  access: "public",
  input: z.object({ token }),
  output: z.object({ username: z.string(), expires_at: timestamp }),
  errors: ["not_found", "forbidden"],
});

export const resetPassword = operation({
  name: "resetPassword",
  socket: "auth.reset_password",
  throttles: [{ name: "reset_tokens", of: "Each `token` that does not work" }],
  summary:
    "Sets a new password with the token of a reset link, and ends all sessions of the account. A second factor stays. `not_found` as for `getPasswordReset`.",
  access: "public",
  input: z.object({ token, new_password: newPassword }),
  errors: ["not_found", "forbidden"],
});

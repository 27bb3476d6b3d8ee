import { z } from "zod";
import { operation } from "../operation.ts";
import { Session, SignedIn } from "../records.ts";
import { displayName, newUsername, text, username, uuid } from "../text/fields.ts";
import { secondFactorCode } from "./second-factor.ts";

export const newPassword = text(8, 1024).meta({
  description:
    "The username, the most common passwords and simple patterns, such as a row of keys, are refused.",
});

export const signUp = operation({
  name: "signUp",
  socket: "auth.register",
  throttles: [
    { name: "sign_ups", of: "A new account" },
    { name: "invite_codes", of: "Each wrong `invite_code`" },
  ],
  summary: "Creates an account with one agent per provider, and signs it in.",
  access: "public",
  input: z.object({
    username: newUsername,
    password: newPassword,
    display_name: displayName.optional(),
    invite_code: text(1, 128)
      .optional()
      .meta({ description: "Required where sign-up is by invitation." }),
  }),
  output: SignedIn,
  errors: ["conflict", "forbidden"],
});

export const signIn = operation({
  name: "signIn",
  socket: "auth.login",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary: "Exchanges a username and a password for an access token.",
  access: "public",
  input: z.object({
    username,
    password: text(1, 1024),
    device: text(1, 512).optional().meta({
      description:
        "The `device` that an earlier `signIn` or `signUp` of the account returned. An unknown one is ignored.",
    }),
    code: secondFactorCode.optional(),
  }),
  output: SignedIn,
  errors: ["unauthorized", "second_factor_required", "forbidden", "suspended"],
});

export const changePassword = operation({
  name: "changePassword",
  socket: "auth.change_password",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary:
    "Changes the caller's password and ends all of the caller's other sessions. `forbidden` if the current password is wrong, or the account has none.",
  input: z.object({ current_password: text(1, 1024), new_password: newPassword }),
  errors: ["forbidden"],
});

export const confirmPassword = operation({
  name: "confirmPassword",
  socket: "auth.confirm_password",
  throttles: [{ name: "passwords", of: "Each wrong password or code" }],
  summary:
    "Confirms with the password that it is still the caller who uses this session: for `confirm_minutes` it may make sensitive calls, as after a sign-in. `forbidden` if the password is wrong, or the caller does not sign in with one.",
  input: z.object({ password: text(1, 1024) }),
  errors: ["forbidden"],
});

export const signOut = operation({
  name: "signOut",
  socket: "auth.logout",
  summary: "Ends the session of this call; sockets opened with its token close with code 4401.",
});

export const getSessions = operation({
  name: "getSessions",
  socket: "auth.sessions",
  summary: "Lists the caller's active sessions, most recently used first.",
  output: z.object({ items: z.array(Session) }),
});

export const revokeSession = operation({
  name: "revokeSession",
  socket: "auth.revoke",
  summary: "Ends one of the caller's sessions; sockets opened with its token close with code 4401.",
  input: z.object({ session_id: uuid }),
  errors: ["not_found"],
});

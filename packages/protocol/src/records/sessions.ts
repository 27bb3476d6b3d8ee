import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { Account } from "./accounts.ts";
import { record } from "./record.ts";

export const Session = record("Session", {
  id: uuid,
  created_at: timestamp,
  last_used_at: timestamp,
  user_agent: z.string().nullable(),
  current: z.boolean(),
});
export type Session = z.infer<typeof Session>;

export const SignedIn = record("SignedIn", {
  access_token: z.string(),
  expires_at: timestamp.meta({ description: "When the token expires if it is not used." }),
  account: Account,
  device: z.string().meta({
    description:
      "Keep it after signing out and send it with the next `signIn`: failed attempts by others then do not slow this client down.",
  }),
});
export type SignedIn = z.infer<typeof SignedIn>;

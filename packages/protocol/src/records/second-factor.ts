import { z } from "zod";
import { timestamp } from "../text/fields.ts";
import { record } from "./record.ts";

export const SecondFactor = record("SecondFactor", {
  available: z.boolean().meta({
    description:
      "Whether the account can have one: it needs a password. For accounts of an OIDC issuer or of a product, that service decides.",
  }),
  enabled: z.boolean().meta({ description: "Whether `signIn` asks for a code." }),
  enabled_at: timestamp.nullable(),
  recovery_codes_left: z.int().meta({ description: "Recovery codes that are not used." }),
});
export type SecondFactor = z.infer<typeof SecondFactor>;

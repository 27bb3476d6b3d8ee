import { z } from "zod";
import { timestamp, uuid } from "../text/fields.ts";
import { record } from "./record.ts";

export const IncomingHook = record("IncomingHook", {
  id: uuid,
  name: z.string(),
  chat_id: uuid,
  creator: z.string().meta({ description: "The username of the person who created it." }),
  account: z.string().meta({ description: "The username that it posts as: `<creator>:<name>`." }),
  created_at: timestamp,
});
export type IncomingHook = z.infer<typeof IncomingHook>;

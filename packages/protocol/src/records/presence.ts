import { z } from "zod";
import { timestamp } from "../text/fields.ts";
import { record } from "./record.ts";

/** Whether a person tells others when they are online. */
export const presenceSetting = z.enum(["visible", "hidden"]);
export type PresenceSetting = z.infer<typeof presenceSetting>;

export const Presence = record("Presence", {
  username: z.string(),
  online: z.boolean().meta({
    description:
      "Whether a socket of a session of the person is open. False for everybody of whom the caller is told nothing.",
  }),
  last_seen_at: timestamp.nullable().meta({
    description:
      "When the person was last online, rounded down: to 5 minutes within the last hour, to the hour within a day, to the day (UTC) before. Null while online, and where nothing is told.",
  }),
});
export type Presence = z.infer<typeof Presence>;

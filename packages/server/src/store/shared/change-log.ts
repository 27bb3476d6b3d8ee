import { z } from "zod";
import type { Change } from "../../changes/change.ts";
import type { LoggedChange } from "../changes.ts";

/**
 * Encodes the durable changes of a transaction's units for the log, in their order; null when there
 * are none. This runs in every transaction.
 */
export function encodeChanges(units: readonly { changes: readonly Change[] }[]): string | null {
  let body = "";
  for (const { changes } of units) {
    for (const change of changes) {
      if (change.kind === "event" && change.delivery === "transient") continue;
      body += `${body === "" ? "[" : ","}${encodeChange(change)}`;
    }
  }
  return body === "" ? null : `${body}]`;
}

function encodeChange(change: Change): string {
  if (change.kind !== "event" || change.shows === undefined) return JSON.stringify(change);
  return JSON.stringify({ ...change, data: undefined });
}

const LoggedEvent = z.looseObject({
  kind: z.literal("event"),
  name: z.string(),
  delivery: z.enum(["counted", "standing", "durable"]),
  to: z.union([z.object({ conversation: z.string() }), z.object({ users: z.array(z.string()) })]),
  data: z.string().optional(),
});

const Logged = z.discriminatedUnion("kind", [
  LoggedEvent,
  z.looseObject({ kind: z.literal("session_ended"), session_id: z.string() }),
  z.looseObject({ kind: z.literal("turns_queued") }),
  z.looseObject({
    kind: z.literal("turns_ended"),
    turns: z.array(z.object({ id: z.int(), node: z.string().nullable() })),
  }),
]);

/**
 * Decodes an entry of the log. Unknown fields are kept, and changes of unknown kinds are left out:
 * a node of a newer version may have written them.
 */
export function decodeChanges(body: string): LoggedChange[] {
  return z
    .array(z.unknown())
    .parse(JSON.parse(body))
    .flatMap((change) => {
      const parsed = Logged.safeParse(change);
      return parsed.success ? [parsed.data as LoggedChange] : [];
    });
}

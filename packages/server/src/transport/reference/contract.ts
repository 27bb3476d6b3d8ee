import {
  declaredErrors,
  type ErrorCode,
  type EventContract,
  type EventPlace,
  errorStatus,
  events,
  type HttpFailure,
  type Operation,
  operations,
  type SocketFailure,
} from "@parley/protocol";
import { uuid } from "@parley/protocol/text/fields";
import { z } from "zod";
import type { Schema } from "./schemas.ts";

/** The contract without its literal types: the reference treats all entries alike. */
export const allOperations: readonly Operation[] = Object.values(operations);
/** Operations of access `service` are for HTTP only. */
export const socketOperations = allOperations.filter(({ access }) => access !== "service");
export const allEvents: readonly NamedEvent[] = Object.entries(events);
export type NamedEvent = readonly [name: string, event: EventContract];

/** The resource of an operation: the part of its socket name before the dot. */
export const resourceOf = ({ socket }: Operation) => socket.split(".", 1)[0] ?? socket;
export const byResource = () => Map.groupBy(allOperations, resourceOf);

export const allErrors = Object.keys(errorStatus) as ErrorCode[];

/** What an operation answers beyond the errors all have in common. */
export const ownErrors = (operation: Operation): ErrorCode[] => [
  ...(operation.access === "public" ? [] : (["unauthorized"] as const)),
  ...operation.errors,
];

/** Every failure of an operation over HTTP, by status. */
export function httpErrors(operation: Operation): ErrorCode[] {
  const declared = declaredErrors(operation);
  return allErrors.filter((code) => declared.includes(code));
}

const optional = <Value extends z.ZodType>(value: Value, description: string) =>
  value.meta({ description }).exactOptional();

const waysToConfirm = z.enum(["password", "sign_in"]);
const parameters = z
  .object({
    retry_after: z.number().exactOptional(),
    fields: optional(z.record(z.string(), z.string()), "What is wrong with which field."),
    names: optional(z.array(z.string()), "With `not_found`: the accounts that do not exist."),
    max_bytes: optional(z.int(), "The limit that a file, or the uploads of a day, exceed."),
    offset: optional(z.int(), "Of `writeTurn`: the length of the answer in bytes."),
    confirm_by: optional(waysToConfirm, "With `confirmation_required`: how to confirm."),
  })
  .exactOptional();
const code = z.enum(allErrors);
const error = z.object({ code, message: z.string(), parameters });

export const httpFailure: z.ZodType<HttpFailure> = z
  .object({
    ok: z.literal(false),
    error_code: z.int().meta({ description: "The HTTP status." }),
    code,
    description: z.string(),
    parameters,
  })
  .meta({ id: "HttpFailure" });

export const socketFailure: z.ZodType<SocketFailure> = z.object({ ok: z.literal(false), error });

/** Whether the frame of an event can have `at`. */
export const hasPlace = ({ delivery }: EventContract) =>
  delivery === "counted" || delivery === "standing";

export const eventPlace: z.ZodType<EventPlace> = z
  .object({ conversation_id: uuid, seq: z.int() })
  .meta({ id: "EventPlace" });

/** Shape of `{ "ok": true }` with its result, if there is one. */
export const success = (result: Schema | null, optional: boolean): Schema => ({
  type: "object",
  properties: { ok: { const: true }, ...(result && { result }) },
  required: result && !optional ? ["ok", "result"] : ["ok"],
});

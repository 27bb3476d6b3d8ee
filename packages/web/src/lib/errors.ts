import { isCallError } from "@parley/client";
import { connectionMessages } from "./connection.ts";
import { describeFacts, excessOf, inTime } from "./describe-failure.ts";
import { toast } from "./toasts.ts";
import type { FieldErrors } from "./validation.ts";

export const SUSPENDED =
  "This account is suspended. Please contact the people who run this service.";

/** An error as text for the person: a sentence, mostly without its full stop. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return "Something went wrong.";
  if (!isCallError(error)) return capitalized(error.message);
  const { code, retryAfter, fields = {} } = error;
  if (code === "suspended") return SUSPENDED;
  if (code === "rate_limited")
    return `${capitalized(excessOf(error))}. Try again ${inTime(retryAfter)}.`;
  if (code === "unavailable" && retryAfter === undefined) {
    return connectionMessages[navigator.onLine ? "unreachable" : "offline"];
  }
  const wrong = Object.entries(code === "bad_request" ? fields : {});
  return wrong.length > 0
    ? wrong.map(([name, text]) => `${fieldLabel(name)} ${text}`).join("; ")
    : capitalized(describeFacts(error));
}

/** What the server says about the fields of a call, by field name. */
export function fieldErrorsOf(error: unknown): FieldErrors {
  const fields = isCallError(error) ? error.fields : undefined;
  return Object.fromEntries(
    // The texts lack their subject, the field: «must have at least 8 characters».
    Object.entries(fields ?? {}).map(([name, text]) => [name, `It ${text}.`]),
  );
}

export const codeOf = (error: unknown) => (isCallError(error) ? error.code : "");

/** Whether the server refused this field of the call. */
export const concerns = (error: unknown, field: string) =>
  isCallError(error) && error.fields?.[field] !== undefined;

/** Shows an error as a toast; for actions that have no place of their own for errors. */
export const showError = (error: unknown) => toast(describeError(error), "danger");

const fieldLabel = (name: string) => capitalized(name.replaceAll("_", " "));
const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

import type { CallError } from "@parley/client";
import { toast } from "../ui/Toasts.tsx";
import { connectionMessages } from "./connection.ts";
import { withoutCodeWords } from "./describe-failure.ts";
import type { FieldErrors } from "./validation.ts";

export const SUSPENDED =
  "This account is suspended. Please contact the people who run this service.";

/** An error as text for the person: a sentence, mostly without its full stop. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return "Something went wrong.";
  const { code, retryAfter, fields = {} } = error as Partial<CallError>;
  if (code === "suspended") return SUSPENDED;
  if (code === "rate_limited") {
    const [, what = "too many attempts"] =
      /^rate limited: (.+), try again/.exec(error.message) ?? [];
    return `${capitalized(what)}. Try again ${inSeconds(retryAfter)}.`;
  }
  if (code === "unavailable" && retryAfter === undefined) {
    return connectionMessages[navigator.onLine ? "unreachable" : "offline"];
  }
  const wrong = Object.entries(fields).map(([name, text]) => `${fieldLabel(name)} ${text}`);
  return wrong.length > 0 ? wrong.join("; ") : capitalized(withoutCodeWords(error.message));
}

/** What the server says about the fields of a call, by field name. */
export function fieldErrorsOf(error: unknown): FieldErrors {
  const fields = error instanceof Error ? (error as Partial<CallError>).fields : undefined;
  return Object.fromEntries(
    // The texts lack their subject, the field: «must have at least 8 characters».
    Object.entries(fields ?? {}).map(([name, text]) => [name, `It ${text}.`]),
  );
}

export const codeOf = (error: unknown) =>
  error instanceof Error ? ((error as Partial<CallError>).code ?? "") : "";

/** Shows an error as a toast; for actions that have no place of their own for errors. */
export const showError = (error: unknown) => toast(describeError(error), "danger");

const inSeconds = (seconds = 0) =>
  seconds < 2
    ? "in a moment"
    : seconds < 90
      ? `in ${seconds} seconds`
      : `in ${Math.ceil(seconds / 60)} minutes`;

const fieldLabel = (name: string) => capitalized(name.replaceAll("_", " "));
const capitalized = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

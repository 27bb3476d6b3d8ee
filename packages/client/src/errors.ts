import type { ConfirmBy, ErrorCode, ErrorParameters } from "@parley/protocol";
import type { CallError, CallFacts, LocalMessage } from "./types.ts";

class FailedCall extends Error implements CallError {
  override readonly name = "CallError";
  readonly code: ErrorCode;
  readonly reason: string;
  readonly retryAfter: number | undefined;
  readonly fields: CallFacts["fields"];
  readonly names: CallFacts["names"];
  readonly maxBytes: number | undefined;
  readonly confirmBy: ConfirmBy | undefined;
  readonly offset: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, "cause" in details ? { cause: details.cause } : undefined);
    this.code = code;
    // A description is the code in words, a colon and the reason: «not found: message».
    this.reason = withoutPrefix(message, `${code.replaceAll("_", " ")}: `);
    this.retryAfter = details.retry_after;
    this.fields = details.fields;
    this.names = details.names;
    this.maxBytes = details.max_bytes;
    this.confirmBy = details.confirm_by;
    this.offset = details.offset;
  }
}

/** Why a file of a message cannot be sent. The cause is what the service said, if it refused the file. */
export class FileFailure extends Error {
  readonly file: string;

  constructor(file: string, why: string, cause?: unknown) {
    super(`${file}: ${why}`, { cause });
    this.file = file;
  }
}

/** What the service said about a message or a file of it, as plain data. */
export function refusalOf(error: unknown): LocalMessage["refusal"] {
  if (error instanceof FileFailure) {
    const refusal = refusalOf(error.cause);
    return refusal && { ...refusal, file: error.file };
  }
  if (!isCallError(error)) return;
  const { code, reason, retryAfter, fields, names, maxBytes } = error;
  return { code, reason, retryAfter, fields, names, maxBytes };
}

const withoutPrefix = (text: string, prefix: string) =>
  text.startsWith(prefix) ? text.slice(prefix.length) : text;

/** Thrown by `onTurn` of an agent: the conversation shows its message, a sentence for people. */
export class TurnFailure extends Error {
  override readonly name = "TurnFailure";
}

interface ErrorDetails extends ErrorParameters {
  cause?: unknown;
}

export const callError = (code: ErrorCode, message: string, details?: ErrorDetails): CallError =>
  new FailedCall(code, message, details);

export const isCallError = (error: unknown): error is CallError => error instanceof FailedCall;

const hasCode = (error: unknown, codes: readonly string[]): boolean =>
  isCallError(error) && codes.includes(error.code);

/** The error as text for people. */
export const describeError = (error: unknown): string => {
  if (isCallError(error) && error.code === "bad_request" && error.fields) {
    return Object.entries(error.fields)
      .map(([field, problem]) => `${field} ${problem}`)
      .join(", ");
  }
  return error instanceof Error ? error.message : String(error);
};

/** Whether the same call may succeed later. */
export const mayRetry = (error: unknown): boolean =>
  hasCode(error, ["unavailable", "rate_limited", "internal"] satisfies ErrorCode[]);

/** Whether the service could not be reached or asked the caller to wait. */
export const isUnavailable = (error: unknown): boolean =>
  hasCode(error, ["unavailable", "rate_limited"] satisfies ErrorCode[]);

/** Whether the caller may not access the record, or it does not exist. */
export const isOutOfReach = (error: unknown): boolean =>
  hasCode(error, ["forbidden", "not_found"] satisfies ErrorCode[]);

/** How the person must confirm who they are before the call can be made; undefined for other errors. */
export const confirmationOf = (error: unknown): ConfirmBy | undefined =>
  isCallError(error) ? error.confirmBy : undefined;

/** Whether the token is not accepted, or its account is suspended: only a new sign-in may help. */
export const isUnauthorized = (error: unknown): boolean =>
  hasCode(error, ["unauthorized", "suspended"] satisfies ErrorCode[]);

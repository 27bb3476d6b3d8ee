/** The closed list of error codes and the HTTP status each one maps to. */
export const errorStatus = {
  bad_request: 400,
  unauthorized: 401,
  second_factor_required: 401,
  forbidden: 403,
  confirmation_required: 403,
  suspended: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  unsupported_media_type: 415,
  rate_limited: 429,
  internal: 500,
  unavailable: 503,
} as const;

export type ErrorCode = keyof typeof errorStatus;

/** `password`: by `confirmPassword`. `sign_in`: by signing in again, which gives another token. */
export type ConfirmBy = "password" | "sign_in";

export interface ErrorParameters {
  /** Seconds to wait before retrying; present with `rate_limited` and `unavailable`. */
  retry_after?: number;
  /** What is wrong with each field; present with a `bad_request` for invalid input, and wherever else the failure is about fields. */
  fields?: Record<string, string>;
  /** The accounts that do not exist; present with a `not_found` that names them. */
  names?: string[];
  /** The limit that a file exceeds (`payload_too_large`), or the uploads of a day (`rate_limited`). */
  max_bytes?: number;
  /** How the person can confirm who they are; present with `confirmation_required`. */
  confirm_by?: ConfirmBy;
  /** The length of the answer in bytes; present with a `conflict` of `writeTurn` at another offset. */
  offset?: number;
}

/** The body of a failed HTTP call. */
export interface HttpFailure {
  ok: false;
  error_code: number;
  code: ErrorCode;
  description: string;
  parameters?: ErrorParameters;
}

/** The reply to a failed socket call. */
export interface SocketFailure {
  ok: false;
  error: { code: ErrorCode; message: string; parameters?: ErrorParameters };
}

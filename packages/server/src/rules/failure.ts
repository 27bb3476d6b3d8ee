import type { ConfirmBy, ErrorCode, ErrorParameters } from "@parley/protocol";

/** An error that is reported to the caller. Any other error that is thrown becomes `internal`. */
export class Failure extends Error {
  override name = "Failure";
  readonly code: ErrorCode;
  readonly parameters: ErrorParameters | undefined;

  constructor(code: ErrorCode, message: string, parameters?: ErrorParameters) {
    super(message);
    this.code = code;
    this.parameters = parameters;
  }
}

/** What is wrong with fields of the input, by their path. */
type Fields = Record<string, string>;

const withFields = (fields: Fields | undefined) => fields && { fields };

// Clients react to codes and parameters, never to words: what they have to tell apart has a parameter.

export const notFound = (thing: string, fields?: Fields) =>
  new Failure("not_found", `not found: ${thing}`, withFields(fields));

/** Accounts that do not exist, or that the caller may not see. */
export const noAccounts = (kind: "user" | "users" | "agent" | "participant", ...names: string[]) =>
  new Failure("not_found", `not found: ${kind} ${names.join(", ")}`, { names });

export const forbidden = (why: string, fields?: Fields) =>
  new Failure("forbidden", `forbidden: ${why}`, withFields(fields));

const ways: Record<ConfirmBy, string> = {
  password: "confirm your password",
  sign_in: "sign in again",
};

/** The caller's session is too old for a sensitive call. */
export const confirmationRequired = (confirm_by: ConfirmBy) =>
  new Failure(
    "confirmation_required",
    `confirmation required: your sign-in was some time ago, ${ways[confirm_by]} first`,
    { confirm_by },
  );

/** The account's sessions have ended, and it cannot sign in. */
export const suspended = () => new Failure("suspended", "suspended: this account is suspended");

export const unauthorized = (why: string) => new Failure("unauthorized", `unauthorized: ${why}`);

/** The password is right, and a valid code of the second factor is missing. */
export const secondFactorRequired = (why: string) =>
  new Failure("second_factor_required", `second factor required: ${why}`);

export const conflict = (why: string, fields?: Fields) =>
  new Failure("conflict", `conflict: ${why}`, withFields(fields));

export const badField = (path: string, problem: string) => badFields({ [path]: problem });

/** The most wrong fields that a failure names: a request can have tens of thousands. */
export const MAX_REPORTED_FIELDS = 20;

export function badFields(fields: Fields): Failure {
  const reported = Object.entries(fields).slice(0, MAX_REPORTED_FIELDS);
  const described = reported.map(([path, problem]) => `${path} ${problem}`);
  return new Failure("bad_request", `bad request: ${described.join("; ")}`, {
    fields: Object.fromEntries(reported),
  });
}

export const rateLimited = (
  retry_after: number,
  what = "too many requests",
  more?: Pick<ErrorParameters, "max_bytes">,
) =>
  new Failure("rate_limited", `rate limited: ${what}, try again in ${retry_after} s`, {
    retry_after,
    ...more,
  });

export const unavailable = (why: string, retryAfter = 1) =>
  new Failure("unavailable", `unavailable: ${why}`, { retry_after: retryAfter });

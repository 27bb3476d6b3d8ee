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

/** A failure whose sentence begins with the words of its code. */
export const failure = (code: ErrorCode, why: string, parameters?: ErrorParameters) =>
  new Failure(code, `${code.replaceAll("_", " ")}: ${why}`, parameters);

const failures = (code: ErrorCode) => (why: string, fields?: Fields) =>
  failure(code, why, fields && { fields });

// Clients react to codes and parameters, never to words: what they have to tell apart has a parameter.

export const notFound = failures("not_found");
export const forbidden = failures("forbidden");
export const conflict = failures("conflict");
export const unauthorized = failures("unauthorized");
/** The password is right, and a valid code of the second factor is missing. */
export const secondFactorRequired = failures("second_factor_required");

/** Accounts that do not exist, or that the caller may not see. */
export const noAccounts = (kind: "user" | "users" | "agent" | "participant", ...names: string[]) =>
  failure("not_found", `${kind} ${names.join(", ")}`, { names });

const ways: Record<ConfirmBy, string> = {
  password: "confirm your password",
  sign_in: "sign in again",
};

/** The caller's session is too old for a sensitive call. */
export function confirmationRequired(confirm_by: ConfirmBy): Failure {
  const why = `your sign-in was some time ago, ${ways[confirm_by]} first`;
  return failure("confirmation_required", why, { confirm_by });
}

/** The account's sessions have ended, and it cannot sign in. */
export const suspended = () => failure("suspended", "this account is suspended");

/** The log has what happened, with the reference. */
export const internalError = (reference: string) =>
  new Failure("internal", `internal error, reference ${reference}`);

export const badField = (path: string, problem: string) => badFields({ [path]: problem });

/** The most wrong fields that a failure names: a request can have tens of thousands. */
export const MAX_REPORTED_FIELDS = 20;

export function badFields(fields: Fields): Failure {
  const reported = Object.entries(fields).slice(0, MAX_REPORTED_FIELDS);
  return failure("bad_request", described(reported), { fields: Object.fromEntries(reported) });
}

const described = (fields: readonly [path: string, problem: string][]) =>
  fields.map((each) => each.join(" ")).join("; ");

/** Throws if something is wrong with items of a list. `pathOf`: the path of what is wrong. */
export function checkItems<Item>(
  items: readonly Item[],
  pathOf: (place: number) => string,
  problemOf: (item: Item, place: number) => string | false | null,
  failed = badFields,
): void {
  const problems = items.flatMap((item, place) => {
    const problem = problemOf(item, place);
    return problem ? [[pathOf(place), problem] as const] : [];
  });
  if (problems.length > 0) throw failed(Object.fromEntries(problems));
}

/** As `badFields`, of all fields, for what is taken. */
export const conflictingFields = (fields: Fields) =>
  conflict(described(Object.entries(fields)), fields);

export const rateLimited = (
  retry_after: number,
  what = "too many requests",
  more?: Pick<ErrorParameters, "max_bytes">,
) => failure("rate_limited", `${what}, try again in ${retry_after} s`, { retry_after, ...more });

export const unavailable = (why: string, retry_after = 1) =>
  failure("unavailable", why, { retry_after });

import { suggestion } from "../rules/similar-names.ts";
import { ConfigError, parseJson } from "./setting.ts";

const MIB = 1024 ** 2;
const GIB = 1024 ** 3;
/** More than a server ever needs. */
const MANY = 1_000_000;

/** All limits that an operator can set. `min` is the smallest useful value; 0 removes a rate limit. */
// biome-ignore format: one row for each limit
export const LIMITS = {
  frame_bytes: { default: 262_144, min: 1024, max: 64 * MIB, meaning: "Maximum size of a request body or a socket frame, in bytes." },
  page_size: { default: 100, min: 1, max: 1000, meaning: "Maximum number of items on a page." },
  page_bytes: { default: MIB, min: 16_384, max: 16 * MIB, meaning: "Bytes of JSON beyond which a page has fewer items, but at least one." },
  group_participants: { default: 1000, min: 2, max: 100_000, meaning: "Maximum number of participants of a group." },
  sockets_per_user: { default: 20, min: 1, max: MANY, meaning: "Maximum number of open sockets per account." },
  messages_per_second: { default: 20, min: 0, max: MANY, meaning: "Messages per second and account. 0: no limit." },
  message_burst: { default: 100, min: 1, max: MANY, meaning: "Messages that an account may send at once after a pause." },
  operations_per_second: { default: 100, min: 0, max: MANY, meaning: "Calls of other operations per second and account. 0: no limit." },
  operation_burst: { default: 300, min: 1, max: MANY, meaning: "Calls of other operations that an account may make at once after a pause." },
  service_operations_per_second: { default: 500, min: 0, max: MANY, meaning: "Calls per second and service key. 0: no limit." },
  service_operation_burst: { default: 1000, min: 1, max: MANY, meaning: "Calls that a service key may make at once after a pause." },
  signups_per_hour: { default: 1000, min: 0, max: MANY, meaning: "Sign-ups per hour and client address. 0: no limit." },
  reports_per_hour: { default: 60, min: 0, max: MANY, meaning: "Messages that an account may report per hour. 0: no limit." },
  exports_per_hour: { default: 10, min: 0, max: MANY, meaning: "Links to its own data that an account may get per hour. 0: no limit." },
  hooks_per_hour: { default: 60, min: 0, max: MANY, meaning: "Incoming hooks and agents that an account may create per hour. 0: no limit." },
  strangers_per_hour: { default: 200, min: 0, max: MANY, meaning: "People who do not know an account that it may add to groups per hour. 0: no limit." },
  cost_per_second: { default: 500, min: 0, max: MANY, meaning: "Cost of the calls of an account per second; a plain call costs 1. 0: no limit. If it is not set, it is 0 when one of the other rates of calls is, and grows with `operations_per_second`." },
  cost_burst: { default: 5000, min: 1, max: 10_000_000, meaning: "Cost of the calls that an account may make at once after a pause." },
  searches_per_second: { default: 10, min: 0, max: MANY, meaning: "Searches per second and account. 0: no limit." },
  search_burst: { default: 30, min: 1, max: MANY, meaning: "Searches that an account may make at once after a pause." },
  file_bytes: { default: 25 * MIB, min: 1, max: 5 * GIB, meaning: "Maximum size of a file, in bytes." },
  files_per_message: { default: 10, min: 1, max: 10, meaning: "Maximum number of files of a message." },
  mentions_per_message: { default: 100, min: 1, max: 1000, meaning: "The first so many different handles in a message mention somebody." },
  image_pixels: { default: 50_000_000, min: 1, max: 1_000_000_000, meaning: "Maximum number of pixels of a picture, width times height." },
  image_pixels_per_hour: { default: 2_000_000_000, min: 0, max: 1_000_000_000_000, meaning: "Pixels of the pictures that a person and their agents may upload per hour. 0: no limit." },
  upload_bytes_per_day: { default: GIB, min: 0, max: 1024 * GIB, meaning: "Bytes that a person and their agents may announce per day (UTC); a file counts as at least 65,536. 0: no limit." },
  stored_file_bytes: { default: 0, min: 0, max: 512 * 1024 * GIB, meaning: "Bytes of all files of everybody together; further ones are answered with 403. 0: no limit." },
  uploads_at_once: { default: 4, min: 1, max: 1000, meaning: "Uploads of a person and their agents that a node receives at the same time." },
  reactions_per_message: { default: 50, min: 1, max: 10_000, meaning: "Maximum number of different emoji on a message." },
  reactions_per_person: { default: 20, min: 1, max: 10_000, meaning: "Maximum number of reactions of one account to a message." },
  backlog_bytes: { default: 4 * MIB, min: 65_536, max: GIB, meaning: "Unread bytes at which a client is disconnected." },
  backlog_total_bytes: { default: 256 * MIB, min: 65_536, max: 1024 * GIB, meaning: "Unread bytes of all clients of a node at which those furthest behind are disconnected." },
  idle_seconds: { default: 60, min: 1, max: 960, meaning: "Seconds without an answer to a ping after which a socket is closed." },
  session_days: { default: 90, min: 1, max: 3650, meaning: "Days after which a session ends even if it is used." },
  confirm_minutes: { default: 15, min: 0, max: 525_600, meaning: "Minutes after a sign-in, or a confirmed password, in which sensitive calls are answered. 0: always." },
};
type LimitName = keyof typeof LIMITS;
export type Limits = Record<LimitName, number>;

const defaultLimits = Object.fromEntries(
  Object.entries(LIMITS).map(([name, limit]) => [name, limit.default]),
) as Limits;

/** Calls may cost this many times what plain calls at the rate of operations cost. */
const COST_PER_OPERATION = 5;

/**
 * Who lifts the rates of calls, or raises that of operations, means what they cost and whom they reach
 * too. What PARLEY_LIMITS names is as it says.
 */
function withRates(limits: Limits, given: object): Limits {
  const { messages_per_second, operations_per_second } = limits;
  const isLifted = messages_per_second === 0 || operations_per_second === 0;
  const strangers_per_hour = isLifted ? 0 : limits.strangers_per_hour;
  const all = { ...limits, strangers_per_hour, ...given };
  if ("cost_per_second" in given) return all;
  const raised = COST_PER_OPERATION * operations_per_second;
  const cost_per_second = isLifted ? 0 : Math.max(limits.cost_per_second, raised);
  return { ...all, cost_per_second, cost_burst: Math.max(limits.cost_burst, cost_per_second) };
}

/** Parses PARLEY_LIMITS: a JSON object that overrides limits by name. */
export function readLimits(value: string | undefined): Limits {
  if (!value) return defaultLimits;
  const given = parseJson("PARLEY_LIMITS", value);
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ConfigError("PARLEY_LIMITS must be a JSON object.");
  }
  for (const [name, limit] of Object.entries(given)) {
    const known = Object.hasOwn(LIMITS, name) && LIMITS[name as LimitName];
    if (!known)
      throw new ConfigError(
        `PARLEY_LIMITS names an unknown limit, "${name}".${suggestion(name, Object.keys(LIMITS))}`,
      );
    const { min, max } = known;
    if (!Number.isInteger(limit) || limit < min || limit > max) {
      throw new ConfigError(`PARLEY_LIMITS: ${name} must be a whole number from ${min} to ${max}.`);
    }
  }
  return withRates({ ...defaultLimits, ...given }, given);
}

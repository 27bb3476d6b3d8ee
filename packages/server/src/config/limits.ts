import { ConfigError } from "./error.ts";
import { parseJson } from "./files.ts";

const defaultLimits = {
  frame_bytes: 262_144,
  page_size: 100,
  page_bytes: 1_048_576,
  group_participants: 1000,
  sockets_per_user: 20,
  messages_per_second: 20,
  message_burst: 100,
  operations_per_second: 100,
  operation_burst: 300,
  service_operations_per_second: 500,
  service_operation_burst: 1000,
  signups_per_hour: 1000,
  reports_per_hour: 60,
  exports_per_hour: 10,
  hooks_per_hour: 60,
  strangers_per_hour: 200,
  cost_per_second: 500,
  cost_burst: 5000,
  searches_per_second: 10,
  search_burst: 30,
  file_bytes: 26_214_400,
  files_per_message: 10,
  mentions_per_message: 100,
  image_pixels: 50_000_000,
  image_pixels_per_hour: 2_000_000_000,
  upload_bytes_per_day: 1_073_741_824,
  stored_file_bytes: 0,
  uploads_at_once: 4,
  reactions_per_message: 50,
  reactions_per_person: 20,
  backlog_bytes: 4_194_304,
  backlog_total_bytes: 268_435_456,
  idle_seconds: 60,
  session_days: 90,
};
export type Limits = typeof defaultLimits;

/** The smallest useful and the largest possible value of each limit. Zero removes a rate limit. */
const limitRanges: Record<keyof Limits, readonly [number, number]> = {
  frame_bytes: [1024, 64 * 1024 * 1024],
  page_size: [1, 1000],
  page_bytes: [16_384, 16 * 1024 * 1024],
  group_participants: [2, 100_000],
  sockets_per_user: [1, 1_000_000],
  messages_per_second: [0, 1_000_000],
  message_burst: [1, 1_000_000],
  operations_per_second: [0, 1_000_000],
  operation_burst: [1, 1_000_000],
  service_operations_per_second: [0, 1_000_000],
  service_operation_burst: [1, 1_000_000],
  signups_per_hour: [0, 1_000_000],
  reports_per_hour: [0, 1_000_000],
  exports_per_hour: [0, 1_000_000],
  hooks_per_hour: [0, 1_000_000],
  strangers_per_hour: [0, 1_000_000],
  cost_per_second: [0, 1_000_000],
  cost_burst: [1, 10_000_000],
  searches_per_second: [0, 1_000_000],
  search_burst: [1, 1_000_000],
  file_bytes: [1, 5 * 1024 * 1024 * 1024],
  files_per_message: [1, 10],
  mentions_per_message: [1, 1000],
  image_pixels: [1, 1_000_000_000],
  image_pixels_per_hour: [0, 1_000_000_000_000],
  upload_bytes_per_day: [0, 1024 * 1024 * 1024 * 1024],
  stored_file_bytes: [0, 512 * 1024 ** 4],
  uploads_at_once: [1, 1000],
  reactions_per_message: [1, 10_000],
  reactions_per_person: [1, 10_000],
  backlog_bytes: [65_536, 1024 * 1024 * 1024],
  backlog_total_bytes: [65_536, 1024 * 1024 * 1024 * 1024],
  idle_seconds: [1, 960],
  session_days: [1, 3650],
};

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
    const range = Object.hasOwn(limitRanges, name) && limitRanges[name as keyof Limits];
    if (!range) throw new ConfigError(`PARLEY_LIMITS names an unknown limit, "${name}".`);
    if (!Number.isInteger(limit) || limit < range[0] || limit > range[1]) {
      throw new ConfigError(
        `PARLEY_LIMITS: ${name} must be a whole number from ${range[0]} to ${range[1]}.`,
      );
    }
  }
  return withRates({ ...defaultLimits, ...given }, given);
}

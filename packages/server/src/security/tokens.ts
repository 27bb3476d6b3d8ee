import { randomBytes } from "node:crypto";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long a session lasts without use. */
const IDLE_MS = 30 * DAY_MS;

/** When a session ends if it is not used after `now`; at the latest `session_days` after it began. */
export const sessionEnd = (createdAt: number, now: number, { session_days }: SessionLimits) =>
  Math.min(now + IDLE_MS, createdAt + session_days * DAY_MS);

/** How old `last_used_at` may become before a call updates it. */
const TOUCH_MS = 60_000;
export const isStale = (lastUsedAt: number | null, now: number) =>
  now - (lastUsedAt ?? 0) >= TOUCH_MS;

export interface SessionLimits {
  /** Days after which a session ends even if it is used. */
  readonly session_days: number;
}

/** An opaque access token of 256 random bits. The store has only its hash. */
export const newToken = () => `ply_${randomBytes(32).toString("base64url")}`;

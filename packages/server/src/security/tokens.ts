import { randomBytes, timingSafeEqual } from "node:crypto";

const PREFIXES = { person: "ply_", agent: "pla_", service: "pls_", reset: "plr_" };
type TokenKind = keyof typeof PREFIXES;

/** An opaque token of 256 random bits. The store has only its hash. */
export const newToken = (kind: TokenKind) =>
  `${PREFIXES[kind]}${randomBytes(32).toString("base64url")}`;

export const isTokenOf = (kind: TokenKind, token: string): boolean =>
  token.startsWith(PREFIXES[kind]);

/** Compares a secret in constant time, so that how long it takes does not tell how much of it is right. */
export function isSameSecret(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long a session lasts without use. */
const IDLE_MS = 30 * DAY_MS;

export interface SessionLimits {
  /** Days after which a session ends even if it is used. */
  readonly session_days: number;
}

/** When a session ends if it is not used after `now`; at the latest `session_days` after it began. */
export const sessionEnd = (createdAt: number, now: number, { session_days }: SessionLimits) =>
  Math.min(now + IDLE_MS, createdAt + session_days * DAY_MS);

/** How old `last_used_at` may become before a call updates it. */
const TOUCH_MS = 60_000;
export const isStale = (lastUsedAt: number | null, now: number) =>
  now - (lastUsedAt ?? 0) >= TOUCH_MS;

import { randomBytes } from "node:crypto";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long a session lasts without being used. */
const IDLE_MS = 30 * DAY_MS;

/** When a session ends that nobody uses from now on; never later than so many days after it began. */
export const sessionEnd = (createdAt: number, now: number, { session_days }: SessionLimits) =>
  Math.min(now + IDLE_MS, createdAt + session_days * DAY_MS);

export interface SessionLimits {
  /** Days after which a session ends however much it is used. */
  readonly session_days: number;
}

/** Opaque: 256 random bits. The server keeps only its hash. */
export const newToken = () => `ply_${randomBytes(32).toString("base64url")}`;

export const hashToken = (token: string) =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex");

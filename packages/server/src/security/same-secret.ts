import { timingSafeEqual } from "node:crypto";

/** Compares a secret in constant time, so that how long it takes does not tell how much of it is right. */
export function isSameSecret(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

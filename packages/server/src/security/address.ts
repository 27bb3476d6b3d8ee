import { isIPv4, isIPv6 } from "node:net";

/** No address is longer; what a proxy passes on may be anything. */
const LONGEST = 45;

/**
 * The network that a client is counted by. An IPv4 address stands for itself, also when it is
 * written as an IPv6 address; an IPv6 customer has at least a /64, so that is what counts.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/s, "");
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return bare.slice(0, LONGEST);
  const groups = groupsOf(bare);
  const [mapped, high = 0, low = 0] = groups.slice(5);
  if (mapped === 0xffff && groups.slice(0, 5).every((group) => group === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  const prefix = groups.slice(0, 4).map((group) => group.toString(16));
  return `${prefix.join(":")}::/64`;
}

/** The eight groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  // The URL parser writes the last 32 bits as two groups, however they were given.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [left = [], right = []] = canonical
    .split("::")
    .map((half) => half.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
}

const USER_AGENT_CHARACTERS = 256;

/** What a client calls itself, as it is stored and logged: one line of bounded length. */
export function boundedUserAgent(given: string | null): string | null {
  const text = (given ?? "")
    .slice(0, 4 * USER_AGENT_CHARACTERS)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return [...text].slice(0, USER_AGENT_CHARACTERS).join("") || null;
}

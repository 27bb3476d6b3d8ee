import { isIPv4, isIPv6 } from "node:net";

/** The longest textual IPv6 address. What a proxy passes on may be any string, and is cut to this. */
const ADDRESS_CHARACTERS = 45;

/**
 * The key for limits per client address: an IPv4 address itself, also if it is mapped into IPv6; for
 * an IPv6 address its /64 prefix, since every IPv6 customer has at least a /64.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/s, "");
  if (isIPv4(bare)) return bare;
  if (!isIPv6(bare)) return bare.slice(0, ADDRESS_CHARACTERS);
  const fields = fieldsOf(bare);
  const [mapped, high = 0, low = 0] = fields.slice(5);
  if (mapped === 0xffff && fields.slice(0, 5).every((field) => field === 0)) {
    return [high >> 8, high & 255, low >> 8, low & 255].join(".");
  }
  const prefix = fields.slice(0, 4).map((field) => field.toString(16));
  return `${prefix.join(":")}::/64`;
}

/** The eight 16-bit fields of an IPv6 address. */
function fieldsOf(address: string): number[] {
  // The URL parser normalises dotted notation: it writes the last 32 bits as two fields.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [left = [], right = []] = canonical
    .split("::")
    .map((half) => half.split(":").filter(Boolean));
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  return [...left, ...zeros, ...right].map((field) => Number.parseInt(field, 16));
}

import { BlockList, isIPv4, isIPv6 } from "node:net";

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

/**
 * IPv4 ranges that are not public: the registry of special-purpose addresses (RFC 6890), multicast,
 * reserved addresses, and the metadata services of clouds that lie outside of these.
 */
const SPECIAL_IPV4 = blockList("ipv4", [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT; also the metadata of Alibaba Cloud
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // host services of Azure
  "169.254.0.0/16", // link-local; also the metadata of most clouds
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments; also the metadata of Oracle Cloud
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, and broadcast
]);

/**
 * The only IPv6 range with public addresses. Outside of it are loopback, link-local, unique local and
 * multicast addresses, those with an IPv4 address inside (mapped, translated by NAT64), and all that is
 * not assigned yet.
 */
const GLOBAL_IPV6 = blockList("ipv6", ["2000::/3"]);

/** Ranges inside of it that are not public. */
const SPECIAL_IPV6 = blockList("ipv6", [
  "2001::/23", // protocol assignments; also Teredo, which has an IPv4 address inside
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, which has an IPv4 address inside
  "3fff::/20", // documentation
]);

/** Whether an IP address is a public one. False for everything that is not an IP address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !SPECIAL_IPV4.check(address, "ipv4");
  // A zone, as in `fe80::1%eth0`, makes an address local.
  if (!isIPv6(address) || address.includes("%")) return false;
  return GLOBAL_IPV6.check(address, "ipv6") && !SPECIAL_IPV6.check(address, "ipv6");
}

function blockList(family: "ipv4" | "ipv6", ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", prefix] = range.split("/");
    list.addSubnet(address, Number(prefix), family);
  }
  return list;
}

import { BlockList, isIPv4, isIPv6 } from "node:net";

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

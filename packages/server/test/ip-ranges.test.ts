import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isLoopbackHost } from "../src/rules/addresses.ts";
import { isPublicAddress } from "../src/security/address.ts";

describe("an address is public", () => {
  test.each([
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2a00:1450:4001:800::200e",
  ])("such as %s", (address) => expect(isPublicAddress(address)).toBe(true));
});

describe("an address is not public", () => {
  test.each([
    ["unspecified", "0.0.0.0"],
    ["unspecified", "::"],
    ["this network", "0.1.2.3"],
    ["loopback", "127.0.0.1"],
    ["loopback", "127.255.255.255"],
    ["loopback", "::1"],
    ["private", "10.0.0.0"],
    ["private", "10.255.255.255"],
    ["private", "172.16.0.1"],
    ["private", "172.31.255.255"],
    ["private", "192.168.0.1"],
    ["carrier-grade NAT", "100.64.0.0"],
    ["carrier-grade NAT", "100.127.255.255"],
    ["link-local", "169.254.0.1"],
    ["link-local", "fe80::1"],
    ["link-local with a zone", "fe80::1%eth0"],
    ["public with a zone", "2606:4700::1%eth0"],
    ["site-local", "fec0::1"],
    ["unique local", "fc00::1"],
    ["unique local", "fdff:ffff::1"],
    ["metadata of most clouds", "169.254.169.254"],
    ["metadata of AWS", "fd00:ec2::254"],
    ["metadata of Google Cloud", "fd20:ce::254"],
    ["metadata of Alibaba Cloud", "100.100.100.200"],
    ["metadata of Oracle Cloud", "192.0.0.192"],
    ["host services of Azure", "168.63.129.16"],
    ["multicast", "224.0.0.1"],
    ["multicast", "239.255.255.250"],
    ["multicast", "ff02::1"],
    ["reserved", "240.0.0.1"],
    ["broadcast", "255.255.255.255"],
    ["documentation", "192.0.2.1"],
    ["documentation", "198.51.100.1"],
    ["documentation", "203.0.113.1"],
    ["documentation", "2001:db8::1"],
    ["documentation", "3fff::1"],
    ["benchmarks", "198.18.0.1"],
    ["6to4 relay", "192.88.99.1"],
    ["IPv4-mapped", "::ffff:10.0.0.1"],
    ["IPv4-mapped", "::ffff:8.8.8.8"],
    ["IPv4-compatible", "::10.0.0.1"],
    ["IPv4-translated", "::ffff:0:10.0.0.1"],
    ["NAT64", "64:ff9b::10.0.0.1"],
    ["local NAT64", "64:ff9b:1::a00:1"],
    ["6to4", "2002:a00:1::1"],
    ["Teredo", "2001:0:a00:1::1"],
    ["discard-only", "100::1"],
    ["segment routing", "5f00::1"],
    ["not assigned", "4000::1"],
    ["not an address", "example.com"],
    ["not in the usual notation", "127.1"],
    ["not in the usual notation", "0x7f000001"],
    ["empty", ""],
  ])("of the kind %s: %j", (_, address) => expect(isPublicAddress(address)).toBe(false));

  test("if it is IPv6 and contains any IPv4 address", () => {
    fc.assert(
      fc.property(fc.ipV4(), (inner) => {
        const [a = 0, b = 0, c = 0, d = 0] = inner.split(".").map(Number);
        const fields = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
        for (const address of [
          `::ffff:${inner}`,
          `::${inner}`,
          `64:ff9b::${inner}`,
          `2002:${fields}::1`,
          `2001:0:${fields}::1`,
        ]) {
          expect([address, isPublicAddress(address)]).toEqual([address, false]);
        }
      }),
    );
  });
});

describe("the host of a URL is this machine", () => {
  test.each(["localhost", "127.0.0.1", "127.1.2.3", "[::1]"])("if it is %s", (hostname) => {
    expect(isLoopbackHost(hostname)).toBe(true);
  });
  test.each(["localhost.example.com", "127.0.0.1.example.com", "128.0.0.1", "[::]", "0.0.0.0", ""])(
    "and is not if it is %j",
    (hostname) => expect(isLoopbackHost(hostname)).toBe(false),
  );
});

import { describe, expect, test } from "bun:test";
import { networkOf } from "../src/security/address.ts";
import { boundedUserAgent } from "../src/transport/headers.ts";

describe("the network of a client address", () => {
  test.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::ffff:c000:207", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002:ffff::", "2001:db8:1:2::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["64:ff9b::192.0.2.7", "64:ff9b:0:0::/64"],
    ["unknown", "unknown"],
    ["", ""],
  ])("of %j is %j", (address, network) => {
    expect(networkOf(address)).toBe(network);
  });

  test("is truncated if it is not an address", () => {
    expect(networkOf("x".repeat(10_000)).length).toBeLessThanOrEqual(45);
  });
});

describe("a user agent", () => {
  test("is truncated to 256 characters without splitting one", () => {
    expect(boundedUserAgent("x".repeat(10_000))).toHaveLength(256);
    expect(boundedUserAgent(`${"x".repeat(255)}😀😀`)?.isWellFormed()).toBe(true);
  });

  test("is one line without control and direction-changing characters", () => {
    expect(boundedUserAgent("Phone\r\n\u001b[31m 1.0\u0085\u202e")).toBe("Phone [31m 1.0");
  });

  test("that is empty is null", () => {
    expect(boundedUserAgent(null)).toBeNull();
    expect(boundedUserAgent(" \t ")).toBeNull();
  });
});

import { describe, expect, test } from "bun:test";
import { isTamperProof } from "../src/rules/addresses.ts";
import {
  checkDestination,
  FetchError,
  type FetchErrorCode,
  type Resolve,
} from "../src/security/destination.ts";

const noResolver: Resolve = (hostname) => Promise.reject(new Error(`resolved ${hostname}`));
const answering =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses;

async function refusal(
  address: string,
  policy: { allowPrivate?: boolean; resolve?: Resolve } = {},
): Promise<FetchErrorCode> {
  try {
    await checkDestination(address, { allowPrivate: false, resolve: noResolver, ...policy });
  } catch (error) {
    if (error instanceof FetchError) return error.code;
    throw error;
  }
  throw new Error(`${address} is not refused`);
}

describe("a supplied address", () => {
  test("is resolved once, to the address preferred by the resolver", async () => {
    const asked: string[] = [];
    const resolve: Resolve = async (hostname) => {
      asked.push(hostname);
      return ["9.9.9.9", "1.1.1.1"];
    };
    const { url, ip } = await checkDestination("https://Hooks.Example.com:8443/a?b#c", {
      allowPrivate: false,
      resolve,
    });
    expect([url.host, ip]).toEqual(["hooks.example.com:8443", "9.9.9.9"]);
    expect(asked).toEqual(["hooks.example.com"]);
  });

  test("may be a public IP address, which needs no resolver", async () => {
    const policy = { allowPrivate: false, resolve: noResolver };
    expect((await checkDestination("https://9.9.9.9/", policy)).ip).toBe("9.9.9.9");
    expect((await checkDestination("https://[2620:fe::fe]/", policy)).ip).toBe("2620:fe::fe");
  });

  test.each([
    ["nothing", ""],
    ["no URL", "example.com/hook"],
    ["no host", "https://"],
    ["an invalid host", "https://exa mple.com/"],
    ["an IPv4 address out of range", "https://256.1.1.1/"],
    ["an IPv6 zone", "https://[fe80::1%25eth0]/"],
    ["plain http", "http://example.com/"],
    ["a file", "file:///etc/passwd"],
    ["another protocol", "gopher://example.com/"],
    ["data", "data:text/plain,a"],
    ["a WebSocket", "wss://example.com/"],
    ["a user", "https://user@example.com/"],
    ["a password", "https://:secret@example.com/"],
    ["a host that looks like credentials", "https://example.com@127.0.0.1/"],
    ["more than 2048 characters", `https://example.com/${"a".repeat(2048)}`],
  ])("is invalid with %s", async (_, address) => {
    expect(await refusal(address)).toBe("address_invalid");
  });

  test.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://127.0.0.1./",
    "https://0x7f.0.0.1/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://2130706433/",
    "https://017700000001/",
    "https://%31%32%37.0.0.1/",
    "https://１２７.0.0.1/",
    "https://①②⑦.⓪.⓪.①/",
    "https://127。0。0。1/",
    "https:\\\\127.0.0.1\\",
    "https:127.0.0.1",
    "https://\t127.0.0.1/",
    "https://0/",
    "https://10.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://0xa9fea9fe/",
    "https://[::]/",
    "https://[::1]/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[64:ff9b::169.254.169.254]/",
    "https://[2002:7f00:1::]/",
    "https://[fd00:ec2::254]/",
  ])("is refused: %j", async (address) => {
    expect(await refusal(address)).toBe("address_refused");
  });

  test.each([
    ["loopback", ["127.0.0.1"]],
    ["a private address", ["10.0.0.1"]],
    ["a mapped address", ["::ffff:10.0.0.1"]],
    ["a private address after a public one", ["9.9.9.9", "10.0.0.1"]],
    ["a private address before a public one", ["fd00::1", "9.9.9.9"]],
  ])("is refused if the name leads to %s", async (_, addresses) => {
    const resolve = answering(...addresses);
    expect(await refusal("https://example.com/", { resolve })).toBe("address_refused");
  });

  test("is unknown if the name leads to nothing usable", async () => {
    expect(await refusal("https://a.test/", { resolve: answering() })).toBe("address_unknown");
    const resolve = answering("not an address", "fe80::1%eth0");
    expect(await refusal("https://a.test/", { resolve })).toBe("address_unknown");
  });

  test("is resolved by the operating system by default", async () => {
    const policy = { allowPrivate: false };
    const code = (promise: Promise<unknown>) => promise.catch((error: FetchError) => error.code);
    expect(await code(checkDestination("https://localhost/", policy))).toBe("address_refused");
    expect(await code(checkDestination("https://a.invalid/", policy))).toBe("address_unknown");
  });
});

describe("where private addresses are allowed", () => {
  const allowed = async (address: string, ...addresses: string[]) => {
    const policy = { allowPrivate: true, resolve: answering(...addresses) };
    return (await checkDestination(address, policy)).ip;
  };

  test("they may be contacted by https and by http", async () => {
    expect(await allowed("https://127.0.0.1/")).toBe("127.0.0.1");
    expect(await allowed("http://127.0.0.1/")).toBe("127.0.0.1");
    expect(await allowed("http://intranet.test/", "10.0.0.1")).toBe("10.0.0.1");
  });

  test("public ones still need https", async () => {
    const policy = (address: string) => ({ allowPrivate: true, resolve: answering(address) });
    expect(await refusal("http://9.9.9.9/", policy(""))).toBe("address_invalid");
    expect(await refusal("http://a.test/", policy("9.9.9.9"))).toBe("address_invalid");
    expect(await allowed("https://a.test/", "9.9.9.9")).toBe("9.9.9.9");
  });

  test("other protocols and credentials are still invalid", async () => {
    for (const address of ["ftp://127.0.0.1/", "http://user@127.0.0.1/"]) {
      expect(await refusal(address, { allowPrivate: true })).toBe("address_invalid");
    }
  });
});

describe("an address that the operator configures", () => {
  test.each([
    ["https://issuer.example.com", true],
    ["https://10.0.0.1", true],
    ["http://localhost:8080/a", true],
    ["http://127.0.0.1:8080", true],
    ["http://[::1]:8080", true],
    ["http://issuer.example.com", false],
    ["http://localhost.example.com", false],
    ["ftp://localhost", false],
    ["issuer", false],
    ["", false],
  ])("is checked to be tamper-proof: %j gives %p", (address, expected) => {
    expect(isTamperProof(address)).toBe(expected);
  });
});

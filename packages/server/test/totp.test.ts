import { expect, test } from "bun:test";
import {
  codeOf,
  newRecoveryCodes,
  newSecret,
  otpauthUri,
  recoveryCodeHash,
  stepOf,
  timeStep,
} from "../src/security/second-factor.ts";

/** «12345678901234567890» in base32: the secret of the test vectors in RFC 6238, appendix B. */
const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

test.each([
  [59, "94287082"],
  [1_111_111_109, "07081804"],
  [1_111_111_111, "14050471"],
  [1_234_567_890, "89005924"],
  [2_000_000_000, "69279037"],
  [20_000_000_000, "65353130"],
])("at %d seconds the code is the end of %s", (seconds, eightDigits) => {
  expect(codeOf(SECRET, timeStep(seconds * 1000))).toBe(eightDigits.slice(2));
});

test("the codes of one step before and after are accepted, and no others", () => {
  const at = 1_234_567_890_000;
  const now = timeStep(at);
  const accepted = [-2, -1, 0, 1, 2].map((distance) =>
    stepOf(SECRET, codeOf(SECRET, now + distance), at),
  );
  expect(accepted).toEqual([null, now - 1, now, now + 1, null]);
  expect(stepOf(SECRET, "", at)).toBeNull();
  expect(stepOf(SECRET, `${codeOf(SECRET, now)}0`, at)).toBeNull();
});

test("secrets have 160 bits in base32", () => {
  const secrets = Array.from({ length: 100 }, newSecret);
  for (const secret of secrets) expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(new Set(secrets).size).toBe(100);
});

test("the address for apps names the service and the account", () => {
  const uri = new URL(otpauthUri(SECRET, "Parley", "ada@chat.example.com"));
  expect(uri.href).toStartWith("otpauth://totp/Parley:ada%40chat.example.com?");
  expect(Object.fromEntries(uri.searchParams)).toEqual({
    secret: SECRET,
    issuer: "Parley",
    algorithm: "SHA1",
    digits: "6",
    period: "30",
  });
});

test("recovery codes are different, and their hashes do not depend on how they are typed", () => {
  const codes = newRecoveryCodes();
  expect(new Set(codes).size).toBe(10);
  for (const code of codes) expect(code).toMatch(/^([a-z2-7]{4}-){3}[a-z2-7]{4}$/);
  const hash = recoveryCodeHash(7, "kold-7yqa-mh2x-u5pe");
  expect(recoveryCodeHash(7, " K01D7YQA MH2X–U5PE ")).toBe(hash);
  expect(recoveryCodeHash(8, "kold-7yqa-mh2x-u5pe")).not.toBe(hash);
  expect(hash).not.toContain("kold");
});

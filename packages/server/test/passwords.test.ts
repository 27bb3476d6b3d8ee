import { expect, spyOn, test } from "bun:test";
import { createPasswords } from "../src/security/passwords.ts";

/** The parameters of a hash and the lengths of its parts, which decide how long comparing takes. */
const costOf = (hash: string) =>
  hash.replaceAll(/(?<=\$)[A-Za-z0-9+/]{16,}/g, (part) => `${part.length}`);

test("comparing without an account does the work of a real comparison, and never succeeds", async () => {
  using verify = spyOn(Bun.password, "verify");
  const { hash, verify: isRight } = createPasswords();
  const real = await hash("a password", "network");
  expect(await isRight("a password", real, "network")).toBe(true);
  expect(await isRight("a password", null, "network")).toBe(false);
  const [, decoy = ""] = verify.mock.calls.map(([, compared]) => String(compared));
  expect(costOf(decoy)).toBe(costOf(real));
});

test("hashing has the cost that OWASP recommends at least", async () => {
  const { hash, rehash } = createPasswords();
  for (const make of [hash, rehash]) {
    expect(await make("a password", "network")).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  }
});

import { describe, expect, test } from "bun:test";
import { passwordWeakness } from "../src/security/common-passwords.ts";

describe("a password is refused", () => {
  test.each([
    ["password", /common/],
    ["Password1", /common/],
    ["qwertyuiop", /common/],
    ["ILOVEYOU", /common/],
    ["ada_lovelace", /username/],
    ["ADA_LOVELACE", /username/],
    ["ecalevol_ada", /username/],
    ["zzzzzzzzzzzzz", /pattern/],
    ["abxyabxyabxyabxy", /pattern/],
    ["efghijklm", /pattern/],
    ["98765432109", /pattern/],
    ["poiuztrewq", /pattern|common/],
  ])("that is %s", (password, why) => {
    expect(passwordWeakness(password, "ada_lovelace")).toMatch(why);
  });
});

describe("a password is accepted", () => {
  test.each([
    "correct horse",
    "8 chars.",
    "ada_lovelace and her engine",
    "hunter2 hunter3",
    "x".repeat(1024),
  ])("that is %s", (password) => {
    expect(passwordWeakness(password, "ada_lovelace")).toBeNull();
  });
});

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
    ["is two words", "correct horse"],
    ["has eight characters", "8 chars."],
    ["has more words than the username", "ada_lovelace and her engine"],
    ["is two words with digits", "hunter2 hunter3"],
    ["is as long as it may be", "x".repeat(1024)],
  ])("that %s", (_, password) => {
    expect(passwordWeakness(password, "ada_lovelace")).toBeNull();
  });
});

import { expect, test } from "bun:test";
import { agentsOf } from "../src/rules/agents.ts";

const names = (owner: string, ...titles: string[]) =>
  agentsOf(
    { id: 1, username: "ada", display_name: owner },
    new Map(titles.map((display_name, index) => [`provider-${index}`, { display_name }])),
  ).map(({ display_name }) => display_name);

test("a default agent has the names of its owner and of its provider", () => {
  expect(names("Ada", "Claude", "GPT")).toEqual(["Ada's Claude", "Ada's GPT"]);
});

test("of names that are too long together, the owner's is cut", () => {
  expect(names("a".repeat(64), "Claude", "GPT")).toEqual([
    `${"a".repeat(55)}'s Claude`,
    `${"a".repeat(58)}'s GPT`,
  ]);
  expect(names(`${"😀".repeat(54)} ${"b".repeat(9)}`, "Claude")).toEqual([
    `${"😀".repeat(54)}'s Claude`,
  ]);
});

test("a provider's name that leaves no room stands alone", () => {
  expect(names("Ada", "c".repeat(64))).toEqual(["c".repeat(64)]);
  expect(names("Ada", "c".repeat(61))).toEqual(["c".repeat(61)]);
});

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "../source.ts";
import { ROOT } from "./copy.ts";
import { planted } from "./fault.ts";
import { faults } from "./faults/index.ts";

test("there are at least thirty planted faults, each with a name of its own", () => {
  const names = new Set(faults.map(({ name }) => name));
  expect(names.size).toBeGreaterThanOrEqual(30);
  expect(names.size).toBe(faults.length);
});

describe("the planted fault", () => {
  test.each(faults.map((fault) => [fault.name, fault] as const))(
    "«%s» can be planted, and names test files",
    (_, fault) => {
      const source = readFileSync(join(ROOT, fault.file), "utf8");
      const faulty = planted(source, fault);
      expect(faulty).not.toBe(source);
      parse(faulty, fault.file);
      expect(fault.tests.length).toBeGreaterThan(0);
      const missing = fault.tests.filter((file) => !existsSync(join(ROOT, file)));
      expect(missing).toEqual([]);
    },
  );
});

test("a planted fault whose text is gone or ambiguous is reported with its name", () => {
  const fault = { name: "anybody may", file: "a.ts", find: "may", replace: "must", tests: [] };
  expect(planted("you may go", fault)).toBe("you must go");
  for (const source of ["you can go", "you may, may you"]) {
    expect(() => planted(source, fault)).toThrow("«anybody may» is outdated: a.ts");
  }
});

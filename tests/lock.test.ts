import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

interface Entry {
  link?: boolean;
  integrity?: string;
  resolved?: string;
  optionalDependencies?: Record<string, string>;
}

const text = readFileSync(join(import.meta.dir, "../package-lock.json"), "utf8");
const { packages } = JSON.parse(text) as { packages: Record<string, Entry> };
const installed = Object.entries(packages).filter(
  ([path, { link }]) => path.includes("node_modules/") && !link,
);

test("every package of the lock file has a checksum that npm verifies", () => {
  expect(installed.length).toBeGreaterThan(50);
  const unverified = installed.filter(([, entry]) => !entry.integrity?.startsWith("sha512-"));
  expect(unverified.map(([path]) => path)).toEqual([]);
});

test("the lock file has the packages of every platform, so that npm ci works on each", () => {
  const missing = installed.flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !packages[`${path}/node_modules/${name}`] && !packages[`node_modules/${name}`],
    ),
  );
  expect(missing).toEqual([]);
});

test("the lock file names no registry, so that npm uses the configured one", () => {
  expect(installed.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

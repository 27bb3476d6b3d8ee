import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export const ROOT = join(import.meta.dir, "../..");

/** All test files, relative to the root. */
export const testFiles = (): string[] =>
  ["packages/*/test/**/*.test.ts", "tests/**/*.test.ts"]
    .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(ROOT)])
    .filter((file) => !file.includes("node_modules"))
    .toSorted();

export const textOf = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const known = new Map<string, readonly string[]>();
const transpilers = {
  ts: new Bun.Transpiler({ loader: "ts" }),
  tsx: new Bun.Transpiler({ loader: "tsx" }),
};

/** The files of this repository that a file imports at run time. */
function importsOf(file: string): readonly string[] {
  const found = known.get(file) ?? readImports(file);
  known.set(file, found);
  return found;
}

function readImports(file: string): string[] {
  if (!/\.tsx?$/.test(file)) return [];
  const folder = join(ROOT, dirname(file));
  const kind = file.endsWith("x") ? "tsx" : "ts";
  return transpilers[kind]
    .scanImports(textOf(file).replace(/^#!.*/, ""))
    .filter(({ path }) => path.startsWith(".") || path.startsWith("@parley/"))
    .map(({ path }) => relative(ROOT, Bun.resolveSync(path, folder)));
}

/** The file and all that it imports, each with its distance in imports. */
export function reach(file: string): Map<string, number> {
  const distances = new Map([[file, 0]]);
  for (const [each, distance] of distances) {
    for (const imported of importsOf(each)) {
      if (!distances.has(imported)) distances.set(imported, distance + 1);
    }
  }
  return distances;
}

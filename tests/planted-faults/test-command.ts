import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The narrowest command that runs a test: without other processes, on one node, or everything. */
export type TestCommand = "unit" | "test" | "all";

const STARTS_PROCESS = /\bBun\.spawn|"node:child_process"|"playwright-core"/;
const transpiler = new Bun.Transpiler({ loader: "tsx" });

/** The command that a test file belongs to. `file` is its path in the folder `root`. */
export function commandOf(root: string, file: string): TestCommand {
  if (/^tests\/(cluster|deploy)\//.test(file)) return "all";
  return startsProcess(root, file, new Set()) ? "test" : "unit";
}

/** Whether a file, or one that it imports, starts a process. Imports of types alone do not count. */
function startsProcess(root: string, file: string, known: Set<string>): boolean {
  if (known.has(file) || !/\.tsx?$/.test(file)) return false;
  known.add(file);
  const source = readFileSync(join(root, file), "utf8");
  if (STARTS_PROCESS.test(source)) return true;
  const targets = transpiler.scanImports(source).flatMap(({ path }) => targetOf(root, file, path));
  return targets.some((target) => startsProcess(root, target, known));
}

/** The file of this repository that an import names. */
function targetOf(root: string, file: string, specifier: string): string[] {
  if (specifier.startsWith(".")) return [join(dirname(file), specifier)];
  if (!specifier.startsWith("@parley/")) return [];
  const path = Bun.resolveSync(specifier, join(root, dirname(file)));
  return [path.slice(root.length + 1)];
}

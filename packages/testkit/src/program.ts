import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CACHE, ROOT } from "./cache.ts";
import { exclusively } from "./exclusively.ts";

/** Test processes that started before a change of the sources still use an earlier build. */
const MAX_BUILDS = 3;
/** All that an executable is made of, with the versions of the installed packages. */
const INPUTS = [
  "packages/{protocol,client,server,web}/{src,public}/**/*",
  "packages/{protocol,client,server,web}/*.{ts,json}",
  "packages/testkit/src/{build-program,clock,movable-clock}.ts",
  "scripts/*.ts",
  "*.json",
  "node_modules/.package-lock.json",
];

let built: string | undefined;

/**
 * The path of the program of the test servers, which is built on first use and after each change of
 * its sources. It starts with less than half of the CPU time that running the sources takes.
 */
export function executable(): string {
  if (built === undefined) {
    const path = join(CACHE, `parley-${contentHash()}`);
    if (!exists(path)) exclusively(() => exists(path) || build(path));
    built = path;
  }
  return built;
}

function contentHash(): string {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(`${Bun.revision} ${process.platform} ${process.arch}`);
  for (const pattern of INPUTS) {
    const files = [...new Bun.Glob(pattern).scanSync({ cwd: ROOT, dot: true })].toSorted();
    for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  }
  return hash.digest("hex").slice(0, 32);
}

function build(path: string): void {
  mkdirSync(CACHE, { recursive: true });
  const unfinished = join(CACHE, "unfinished");
  const script = join(import.meta.dir, "build-program.ts");
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, script, unfinished]);
  if (exitCode !== 0) throw new Error(`building the executable failed: ${stderr}`);
  renameSync(unfinished, path);
  removeOldBuilds();
}

function removeOldBuilds(): void {
  const builds = readdirSync(CACHE).filter((name) => name.startsWith("parley-"));
  const paths = builds.map((name) => join(CACHE, name));
  const newestFirst = paths.toSorted((one, other) => changedAt(other) - changedAt(one));
  for (const path of newestFirst.slice(MAX_BUILDS)) rmSync(path);
}

const exists = (path: string) => changedAt(path) > 0;

/** Zero if there is no such file. */
const changedAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

import { existsSync } from "node:fs";

/** Debian keeps servers where not everybody's path leads. */
const PATH = `${process.env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin`;

/** Where a program is; fetched from Debian's package when it is missing and may be. */
export function installed(program: string, debianPackage: string): string {
  const find = () => (existsSync(program) ? program : Bun.which(program, { PATH }));
  return fetched(find, debianPackage);
}

/** The same for whatever can be found once the package is there. */
export function fetched(find: () => string | null, debianPackage: string): string {
  const there = find();
  if (there) return there;
  if (process.getuid?.() === 0) {
    const command = `apt-get update && apt-get install -y ${debianPackage}`;
    Bun.spawnSync(["sh", "-c", command], {
      env: { ...process.env, PATH, DEBIAN_FRONTEND: "noninteractive" },
      stdout: "ignore",
      stderr: "inherit",
    });
  }
  const now = find();
  if (!now) throw new Error(`the tests need Debian's ${debianPackage}, or what it brings`);
  return now;
}

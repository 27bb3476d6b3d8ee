import { existsSync } from "node:fs";
import { exclusively } from "./exclusively.ts";

/** Debian installs servers into folders that are not in every PATH. */
const PATH = `${process.env.PATH ?? ""}:/usr/local/sbin:/usr/sbin:/sbin`;

/** The path of a program. As root, installs its Debian package if it is missing. */
export function installed(program: string, debianPackage: string): string {
  const find = () => (existsSync(program) ? program : Bun.which(program, { PATH }));
  return installedPath(find, debianPackage);
}

/** The same with a lookup of its own. */
export function installedPath(find: () => string | null, debianPackage: string): string {
  const isRoot = process.getuid?.() === 0;
  const found = find() ?? (isRoot ? exclusively(() => find() ?? install()) : null);
  if (!found)
    throw new Error(`the tests need the Debian package ${debianPackage}, or its programs`);
  return found;

  function install(): string | null {
    const command = `apt-get update && apt-get install -y ${debianPackage}`;
    Bun.spawnSync(["sh", "-c", command], {
      env: { ...process.env, PATH, DEBIAN_FRONTEND: "noninteractive" },
      stdout: "ignore",
      stderr: "inherit",
    });
    return find();
  }
}

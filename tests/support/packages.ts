import { existsSync } from "node:fs";

/** Sees to it that a program is there, from Debian's package if it is missing. */
export function installed(path: string, debianPackage: string): void {
  if (existsSync(path) || Bun.which(path)) return;
  const command = `apt-get update && apt-get install -y ${debianPackage}`;
  const { exitCode } = Bun.spawnSync(["sh", "-c", command], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdout: "ignore",
  });
  if (exitCode !== 0) throw new Error(`the tests need ${path}: apt-get install ${debianPackage}`);
}

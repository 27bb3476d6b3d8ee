import { statSync } from "node:fs";
import { join } from "node:path";
import { exclusively } from "./exclusively.ts";

const FOLDER = new URL("../../../tests/tools", import.meta.url).pathname;

/**
 * The `node_modules` of the linters, validators and SDKs in tests/tools, which are installed on first
 * use and when the lock file has changed.
 */
export function toolsFolder(): string {
  const modules = join(FOLDER, "node_modules");
  const isInstalled = () =>
    changedAt(join(modules, ".package-lock.json")) > changedAt(join(FOLDER, "package-lock.json"));
  if (!isInstalled()) exclusively(() => isInstalled() || install());
  return modules;
}

/** Zero if there is no such file. */
const changedAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function install(): void {
  const command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"];
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: FOLDER });
  if (exitCode !== 0) throw new Error(`installing tests/tools failed: ${stderr}`);
}

export const tool = (name: string): string => join(toolsFolder(), ".bin", name);

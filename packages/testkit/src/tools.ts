import { existsSync } from "node:fs";
import { join } from "node:path";

const FOLDER = new URL("../../../tests/tools", import.meta.url).pathname;

/** `node_modules` of the checkers that tests use, installed if they are missing. */
export function toolsFolder(): string {
  const modules = join(FOLDER, "node_modules");
  if (!existsSync(join(modules, ".package-lock.json"))) {
    const command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: FOLDER });
    if (exitCode !== 0) throw new Error(`the tools of the tests could not be installed: ${stderr}`);
  }
  return modules;
}

export const tool = (name: string): string => join(toolsFolder(), ".bin", name);

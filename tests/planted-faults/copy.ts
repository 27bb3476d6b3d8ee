import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const ROOT = join(import.meta.dir, "../..");
const MODULES = "node_modules";
const WORKSPACES = "@parley";
/** The build of the test servers reads it. */
const INSTALLED = ".package-lock.json";

/** A copy of the sources with a folder for temporary files. Changes in it leave the working tree alone. */
export interface Copy extends Disposable {
  readonly root: string;
  readonly temporary: string;
}

/** Copies the files that git tracks or would add, as they are now. */
export function copySources(): Copy {
  const folder = mkdtempSync(join(tmpdir(), "parley-faults-"));
  const copy: Copy = {
    root: join(folder, "sources"),
    temporary: join(folder, "temporary"),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
  try {
    // The PostgreSQL of a test may run as another user.
    chmodSync(folder, 0o755);
    for (const file of sourceFiles()) copyFile(file, copy.root);
    linkModules(copy.root);
    return copy;
  } catch (error) {
    copy[Symbol.dispose]();
    throw error;
  }
}

function sourceFiles(): string[] {
  const command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { stdout, stderr, exitCode } = Bun.spawnSync(command, { cwd: ROOT });
  if (exitCode !== 0) throw new Error(`git ls-files failed: ${stderr}`);
  const files = stdout.toString().split("\0").filter(Boolean);
  // Git lists deleted files until the deletion is staged.
  return files.filter((file) => existsSync(join(ROOT, file)));
}

function copyFile(file: string, root: string): void {
  mkdirSync(dirname(join(root, file)), { recursive: true });
  copyFileSync(join(ROOT, file), join(root, file));
}

/** Links the installed packages, and the workspaces to those of the copy. The cache is the copy's own. */
function linkModules(root: string): void {
  mkdirSync(join(root, MODULES, WORKSPACES), { recursive: true });
  copyFile(join(MODULES, INSTALLED), root);
  for (const name of readdirSync(join(ROOT, MODULES))) {
    if ([WORKSPACES, INSTALLED, ".cache"].includes(name)) continue;
    symlinkSync(join(ROOT, MODULES, name), join(root, MODULES, name));
  }
  for (const name of readdirSync(join(ROOT, MODULES, WORKSPACES))) {
    const place = join(MODULES, WORKSPACES, name);
    symlinkSync(readlinkSync(join(ROOT, place)), join(root, place));
  }
}

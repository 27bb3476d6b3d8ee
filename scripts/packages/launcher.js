#!/usr/bin/env node
// Starts the server with Bun, which is installed with this package. Runs on Node and on Bun.
import { spawn } from "node:child_process";
import { statSync } from "node:fs";
import { createRequire } from "node:module";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A file that only explains what to do takes the place of the runtime if no install script ran. */
const MIN_RUNTIME_BYTES = 1_000_000;

const program = findRuntime();
if (program === null) {
  process.stderr.write(
    "Parley needs Bun, which npm installs with it. Install again without --omit=optional.\n",
  );
  process.exit(1);
}

const main = fileURLToPath(new URL("../dist/main.js", import.meta.url));
const server = spawn(program, [main, ...process.argv.slice(2)], {
  stdio: "inherit",
  // Without it, at most 256 answers of agents stream at the same time.
  env: { BUN_CONFIG_MAX_HTTP_REQUESTS: "65336", ...process.env },
});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    // A terminal sends Ctrl-C to the server too; a second signal would end it at once.
    const isFromTerminal = signal === "SIGINT" && process.stdin.isTTY;
    if (!isFromTerminal) server.kill(signal);
  });
}
server.on("error", (error) => {
  process.stderr.write(`Parley: Bun could not be started: ${error.message}\n`);
  process.exit(1);
});
server.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
});

function findRuntime() {
  if (process.versions.bun) return process.execPath;
  for (const find of [installedRuntime, platformRuntime]) {
    const path = find();
    if (path !== null && isRuntime(path)) return path;
  }
  return null;
}

/** Where the install script of Bun's package puts it. */
function installedRuntime() {
  const bun = resolveFrom(import.meta.url, "bun/package.json");
  return bun && join(dirname(bun), "bin/bun.exe");
}

/** Where it is if that script was not allowed to run. */
function platformRuntime() {
  const bun = resolveFrom(import.meta.url, "bun/package.json");
  const platform = bun && resolveFrom(bun, `@oven/${platformName()}/package.json`);
  return platform && join(dirname(platform), "bin/bun");
}

function resolveFrom(file, specifier) {
  try {
    return createRequire(file).resolve(specifier);
  } catch (error) {
    if (error.code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

function platformName() {
  const architecture = process.arch === "arm64" ? "aarch64" : process.arch;
  const isMusl =
    process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
  return `bun-${process.platform}-${architecture}${isMusl ? "-musl" : ""}`;
}

function isRuntime(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  return found !== undefined && found.size > MIN_RUNTIME_BYTES;
}

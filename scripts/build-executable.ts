#!/usr/bin/env bun
/**
 * Builds the server and its web client into one executable file, which needs nothing beside it but
 * the C library: `bun scripts/build-executable.ts [dist/parley]`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { BunPlugin } from "bun";
import { buildWeb, type WebFile } from "../packages/web/build.ts";

const SERVER = join(import.meta.dir, "../packages/server/src");

/** An executable has no sources to build the client from: it carries what was built. */
const embedded = (files: readonly WebFile[], folder: string): BunPlugin => ({
  name: "embedded-web-client",
  setup: (build) => {
    build.onLoad({ filter: /[\\/]packages[\\/]web[\\/]build\.ts$/ }, () => ({
      contents: webModule(files, folder),
      loader: "ts",
    }));
  },
});

/** Stands in for the client's build, with the same exports. */
function webModule(files: readonly WebFile[], folder: string): string {
  const imports: string[] = [];
  const carry = (path: string): string => {
    const name = `file${imports.length}`;
    imports.push(
      `import ${name} from ${JSON.stringify(join(folder, path))} with { type: "file" };`,
    );
    return `Bun.file(${name}).bytes()`;
  };
  const entries = files.map(
    ({ path, type }) =>
      `{ path: ${JSON.stringify(path)}, type: ${JSON.stringify(type)}, plain: await ${carry(path)}, gzip: await ${carry(`${path}.gz`)}, brotli: await ${carry(`${path}.br`)} }`,
  );
  const types = files.map(({ path, type }) => [path.slice(1), type]);
  return [
    ...imports,
    `export const buildWeb = async () => [${entries.join(", ")}];`,
    `const types = new Map(${JSON.stringify(types)});`,
    "export const typeOf = (path) => types.get(path);",
  ].join("\n");
}

const outfile = resolve(process.argv[2] ?? join(import.meta.dir, "../dist/parley"));
const folder = await mkdtemp(join(tmpdir(), "parley-web-"));
try {
  const files = await buildWeb(folder);
  const { outputs } = await Bun.build({
    // The background threads of the store are looked for beside the program.
    entrypoints: ["main.ts", "store/sqlite/worker.ts", "store/sqlite/search-worker.ts"].map(
      (file) => join(SERVER, file),
    ),
    naming: { entry: "[name].[ext]" },
    plugins: [embedded(files, folder)],
    target: "bun",
    minify: { whitespace: true, syntax: true },
    sourcemap: "inline",
    // What the program reads is its environment, not files that happen to lie where it starts.
    compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
  });
  // The executable carries its source maps itself.
  for (const { kind, path } of outputs) if (kind === "sourcemap") await rm(path);
  process.stdout.write(`${outfile}\n`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

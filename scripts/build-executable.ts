#!/usr/bin/env bun
/**
 * Builds the server and its web client into one executable, which needs only the C library:
 * `bun scripts/build-executable.ts [dist/parley]`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { BunPlugin } from "bun";
import { buildWeb, type WebFile } from "../packages/web/build.ts";
import { SERVER_ENTRIES } from "./server-entries.ts";

/** Embeds the built web client: the executable has no sources to build it from. */
const embedWebClient = (files: readonly WebFile[], folder: string): BunPlugin => ({
  name: "embedded-web-client",
  setup: (build) => {
    build.onLoad({ filter: /[\\/]packages[\\/]web[\\/]build\.ts$/ }, () => ({
      contents: webModule(files, folder),
      loader: "ts",
    }));
  },
});

/** The source of a module with the exports of the client's build, which returns the embedded files. */
function webModule(files: readonly WebFile[], folder: string): string {
  const imports: string[] = [];
  const embed = (path: string): string => {
    const name = `file${imports.length}`;
    imports.push(
      `import ${name} from ${JSON.stringify(join(folder, path))} with { type: "file" };`,
    );
    return `Bun.file(${name}).bytes()`;
  };
  const entries = files.map(
    ({ path, type }) =>
      `{ path: ${JSON.stringify(path)}, type: ${JSON.stringify(type)}, plain: await ${embed(path)}, gzip: await ${embed(`${path}.gz`)}, brotli: await ${embed(`${path}.br`)} }`,
  );
  const types = files.map(({ path, type }) => [path.slice(1), type]);
  return [
    ...imports,
    `export const buildWeb = async () => [${entries.join(", ")}];`,
    `const types = new Map(${JSON.stringify(types)});`,
    "export const typeOf = (path) => types.get(path);",
  ].join("\n");
}

/** The plugins can replace sources. */
export async function buildExecutable(
  outfile: string,
  plugins: readonly BunPlugin[] = [],
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "parley-web-"));
  try {
    const files = await buildWeb(folder);
    const { outputs } = await Bun.build({
      entrypoints: SERVER_ENTRIES,
      naming: { entry: "[name].[ext]" },
      plugins: [embedWebClient(files, folder), ...plugins],
      target: "bun",
      minify: { whitespace: true, syntax: true },
      // Parsing the sources would take about half of the CPU time of a start.
      bytecode: true,
      format: "esm",
      sourcemap: "inline",
      // Settings come from the environment only, not from files in the working directory.
      compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
    });
    // The executable contains its source maps.
    for (const { kind, path } of outputs) if (kind === "sourcemap") await rm(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  const outfile = resolve(process.argv[2] ?? join(import.meta.dir, "../dist/parley"));
  await buildExecutable(outfile);
  process.stdout.write(`${outfile}\n`);
}

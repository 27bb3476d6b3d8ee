import { chmod, cp } from "node:fs/promises";
import { join } from "node:path";
import type { BunPlugin } from "bun";
import root from "../../package.json" with { type: "json" };
import { buildWeb, type WebFile } from "../../packages/web/build.ts";
import { SERVER_ENTRIES } from "../server-entries.ts";
import { thirdPartyLicenses } from "./licenses.ts";
import { type Manifest, pack, readManifest } from "./pack.ts";

/**
 * Packs the server as JavaScript for Bun, with the web client. Its only dependency is the runtime: a
 * script for Node starts it.
 */
export const packServer = (out: string) =>
  pack("server", out, async (folder) => {
    const files = await buildWeb(join(folder, "web"));
    await Bun.build({
      entrypoints: SERVER_ENTRIES,
      outdir: join(folder, "dist"),
      naming: { entry: "[name].[ext]", chunk: "chunk-[hash].[ext]" },
      plugins: [builtWebClient(files), builtWorkers],
      target: "bun",
      splitting: true,
      minify: { whitespace: true, syntax: true },
    });
    await cp(join(import.meta.dir, "launcher.js"), join(folder, "bin/parley.js"));
    await chmod(join(folder, "bin/parley.js"), 0o755);
    await Bun.write(join(folder, "THIRD-PARTY-LICENSES.txt"), await thirdPartyLicenses());
    return publishedManifest(await readManifest("server"));
  });

const publishedManifest = ({ private: _, dependencies: _bundled, ...manifest }: Manifest) => ({
  ...manifest,
  engines: root.engines,
  bin: { parley: "bin/parley.js" },
  dependencies: { bun: root.dependencies.bun },
});

/** Reads the built web client from the package, which has no sources to build it from. */
const builtWebClient = (files: readonly WebFile[]): BunPlugin => ({
  name: "built-web-client",
  setup: (build) => {
    const list = files.map(({ path, type }) => ({ path, type }));
    const types = list.map(({ path, type }) => [path.slice(1), type]);
    const contents = `
      import { join } from "node:path";
      const read = (path) => Bun.file(join(import.meta.dir, "../web", path)).bytes();
      export const buildWeb = () => Promise.all(${JSON.stringify(list)}.map(async (file) => ({
        ...file,
        plain: await read(file.path),
        gzip: await read(file.path + ".gz"),
        brotli: await read(file.path + ".br"),
      })));
      const types = new Map(${JSON.stringify(types)});
      export const typeOf = (path) => types.get(path);`;
    build.onLoad({ filter: /[\\/]packages[\\/]web[\\/]build\.ts$/ }, () => ({
      contents,
      loader: "ts",
    }));
  },
});

/** Threads start from files beside the code that starts them. In the package they are JavaScript. */
const builtWorkers: BunPlugin = {
  name: "built-workers",
  setup: (build) => {
    // Any file of the server may start one.
    const filter = /[\\/]packages[\\/]server[\\/]src[\\/].+\.ts$/;
    build.onLoad({ filter }, async ({ path }) => {
      const source = await Bun.file(path).text();
      const contents = source.replaceAll(/(new URL\("\.\/[\w-]+)\.ts"/g, '$1.js"');
      return { contents, loader: "ts" };
    });
  },
};

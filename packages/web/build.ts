#!/usr/bin/env bun
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import { withPages } from "./build/page.ts";
import { browserEntities, preactForReact } from "./build/plugins.ts";
import { scriptsOf } from "./build/scripts.ts";
import { type SourceFile, scriptOf, textFile, textOf } from "./build/sources.ts";

const HERE = import.meta.dir;
const DIST = join(HERE, "dist");
const brotli = promisify(brotliCompress);
/** Chunks for few people. The service worker does not cache them, so that others do not load them. */
const RARE_CHUNKS = /\/chunk-OperatePage-/;

/** A file as it is served: its URL path, and its bytes, plain and compressed. */
export interface WebFile {
  path: string;
  type: string;
  plain: Uint8Array<ArrayBuffer>;
  gzip: Uint8Array<ArrayBuffer>;
  brotli: Uint8Array<ArrayBuffer>;
}

/** Builds the client in memory, and also into `outdir` if it is given. */
export async function buildWeb(outdir?: string): Promise<WebFile[]> {
  const { default: tailwind } = await import("bun-plugin-tailwind");
  const { outputs } = await Bun.build({
    entrypoints: [join(HERE, "src/main.tsx")],
    plugins: [tailwind, browserEntities, preactForReact],
    target: "browser",
    splitting: true,
    minify: true,
    publicPath: "/assets/",
    naming: { entry: "[name]-[hash].[ext]", chunk: "chunk-[name]-[hash].[ext]" },
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const assets = await Promise.all(
    outputs.map(async (output) => ({
      path: `/assets/${output.path.replace(/^\.?\//, "")}`,
      bytes: new Uint8Array(await output.arrayBuffer()),
    })),
  );
  const files = await withWorker(await withPages(assets));
  const quality = outdir === undefined ? 5 : constants.BROTLI_MAX_QUALITY;
  const compressedFiles = await Promise.all(files.map((file) => compress(file, quality)));
  if (outdir !== undefined) await write(compressedFiles, outdir);
  return compressedFiles;
}

/** Adds the service worker. Its content changes with every change of a file, so browsers update it. */
async function withWorker(files: SourceFile[]): Promise<SourceFile[]> {
  const build = Bun.hash(files.map((file) => `${file.path} ${textOf(file)}`).join("\n")).toString(
    36,
  );
  const paths = files
    .map(({ path }) => path)
    .filter((path) => path.startsWith("/assets/") && !RARE_CHUNKS.test(path));
  return [...files, textFile("/service-worker.js", await serviceWorker(build, paths))];
}

/** The service worker of a build that caches the page and the given paths. */
export const serviceWorker = (build: string, paths: readonly string[]): Promise<string> =>
  scriptOf("service-worker.ts", { BUILD: JSON.stringify(build), FILES: JSON.stringify(paths) });

const types: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  png: "image/png",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};

export const typeOf = (path: string) =>
  types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream";

async function compress({ path, bytes: plain }: SourceFile, quality: number): Promise<WebFile> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
  return {
    path,
    type: typeOf(path),
    plain,
    gzip: Bun.gzipSync(plain, { level: 9 }),
    brotli: new Uint8Array(await brotli(plain, { params })),
  };
}

async function write(files: WebFile[], outdir: string): Promise<void> {
  await rm(outdir, { recursive: true, force: true });
  await mkdir(outdir, { recursive: true });
  for (const { path, plain, gzip, brotli: smallest } of files) {
    await Bun.write(join(outdir, path), plain);
    await Bun.write(join(outdir, `${path}.gz`), gzip);
    await Bun.write(join(outdir, `${path}.br`), smallest);
  }
}

/** Gzipped bytes of script that a browser loads before each view is usable. */
export function firstLoads(files: readonly WebFile[]) {
  const { page, signIn, shell, chat } = scriptsOf(
    files.map(({ path, plain }) => ({ path, bytes: plain })),
  );
  const sum = (...paths: string[]) =>
    files
      .filter(({ path }) => paths.includes(path))
      .reduce((all, { gzip }) => all + gzip.length, 0);
  return {
    signIn: sum(...page, ...signIn),
    list: sum(...page, ...shell),
    conversation: sum(...page, ...shell, ...chat),
  };
}

if (import.meta.main) {
  const files = await buildWeb(DIST);
  const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`;
  for (const { path, plain, gzip, brotli: smallest } of files) {
    process.stdout.write(
      `${path.padEnd(44)} ${kilobytes(plain.length).padStart(10)}  gzip ${kilobytes(gzip.length).padStart(9)}  brotli ${kilobytes(smallest.length).padStart(9)}\n`,
    );
  }
  for (const [view, bytes] of Object.entries(firstLoads(files)))
    process.stdout.write(`First load of ${view}: ${kilobytes(bytes)} of script, gzipped\n`);
}

#!/usr/bin/env bun
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";
import type { BunPlugin } from "bun";

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

/** The browser decodes the entities of HTML: the table that markdown-it brings takes 9 kB, gzipped. */
const browserEntities: BunPlugin = {
  name: "browser-entities",
  setup: (build) => {
    build.onResolve({ filter: /^entities$/ }, () => ({ path: join(HERE, "src/lib/entities.ts") }));
  },
};

/** Builds the client in memory, and also into `outdir` if it is given. */
export async function buildWeb(outdir?: string): Promise<WebFile[]> {
  const { default: tailwind } = await import("bun-plugin-tailwind");
  const built = await Bun.build({
    entrypoints: [join(HERE, "src/main.tsx"), join(HERE, "src/theme-boot.ts")],
    plugins: [tailwind, browserEntities],
    target: "browser",
    splitting: true,
    minify: true,
    publicPath: "/assets/",
    naming: { entry: "[name]-[hash].[ext]", chunk: "chunk-[name]-[hash].[ext]" },
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const assets = await Promise.all(
    built.outputs.map(async (output) => ({
      path: `/assets/${output.path.replace(/^\.?\//, "")}`,
      text: await output.text(),
    })),
  );
  const files = await withWorker(await withPages(assets));
  const quality = outdir === undefined ? 5 : constants.BROTLI_MAX_QUALITY;
  const compressedFiles = await Promise.all(files.map((file) => compress(file, quality)));
  if (outdir !== undefined) await write(compressedFiles, outdir);
  return compressedFiles;
}

interface TextFile {
  path: string;
  text: string;
}

async function withPages(assets: TextFile[]): Promise<TextFile[]> {
  const read = (name: string) => Bun.file(join(HERE, "public", name)).text();
  const icon = hashed("icon.svg", await read("icon.svg"));
  const manifest = hashed(
    "manifest.webmanifest",
    (await read("manifest.webmanifest")).replace("%ICON%", icon.path),
  );
  const pathOf = (pattern: RegExp) => assets.find(({ path }) => pattern.test(path))?.path ?? "";
  const values: Record<string, string> = {
    ICON: icon.path,
    MANIFEST: manifest.path,
    STYLE: pathOf(/\/main-\w+\.css$/),
    THEME: pathOf(/\/theme-boot-\w+\.js$/),
    SCRIPT: pathOf(/\/main-\w+\.js$/),
  };
  const page = (await read("index.html")).replace(/%([A-Z]+)%/g, (_, name) => values[name] ?? "");
  return [{ path: "/index.html", text: page }, icon, manifest, ...assets];
}

/** Adds the service worker. Its content changes with every change of a file, so browsers update it. */
async function withWorker(files: TextFile[]): Promise<TextFile[]> {
  const build = Bun.hash(files.map(({ path, text }) => `${path} ${text}`).join("\n")).toString(36);
  const paths = files
    .map(({ path }) => path)
    .filter((path) => path.startsWith("/assets/") && !RARE_CHUNKS.test(path));
  return [...files, { path: "/service-worker.js", text: await serviceWorker(build, paths) }];
}

/** The service worker of a build that caches the page and the given paths. */
export async function serviceWorker(build: string, paths: readonly string[]): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(HERE, "src/service-worker.ts")],
    target: "browser",
    minify: true,
    define: { BUILD: JSON.stringify(build), FILES: JSON.stringify(paths) },
  });
  return outputs[0]?.text() ?? "";
}

function hashed(name: string, text: string): TextFile {
  const [stem, extension] = name.split(".");
  return { path: `/assets/${stem}-${Bun.hash(text).toString(36)}.${extension}`, text };
}

const types: Record<string, string> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  webmanifest: "application/manifest+json",
};

export const typeOf = (path: string) =>
  types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream";

async function compress({ path, text }: TextFile, quality: number): Promise<WebFile> {
  const plain = new TextEncoder().encode(text);
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

/** Gzipped bytes of script that a browser loads before the page is usable. */
export function firstLoad(files: readonly WebFile[]): number {
  const scripts = new Map(files.filter(({ path }) => path.endsWith(".js")).map((f) => [f.path, f]));
  const page = new TextDecoder().decode(files.find(({ path }) => path === "/index.html")?.plain);
  const needed = new Set<string>();
  const visit = (path: string) => {
    const file = scripts.get(path);
    if (!file || needed.has(path)) return;
    needed.add(path);
    const source = new TextDecoder().decode(file.plain);
    for (const [, name] of source.matchAll(/(?:from|import)\s*"\.?\/?(?:assets\/)?([\w.-]+\.js)"/g))
      visit(`/assets/${name}`);
  };
  for (const [, path = ""] of page.matchAll(/src="([^"]+\.js)"/g)) visit(path);
  return [...needed].reduce((sum, path) => sum + (scripts.get(path)?.gzip.length ?? 0), 0);
}

if (import.meta.main) {
  const files = await buildWeb(DIST);
  const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`;
  for (const { path, plain, gzip, brotli: smallest } of files) {
    process.stdout.write(
      `${path.padEnd(44)} ${kilobytes(plain.length).padStart(10)}  gzip ${kilobytes(gzip.length).padStart(9)}  brotli ${kilobytes(smallest.length).padStart(9)}\n`,
    );
  }
  process.stdout.write(`First load: ${kilobytes(firstLoad(files))} of script, gzipped\n`);
}

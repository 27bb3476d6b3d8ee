import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { $, Glob } from "bun";

export const ROOT = join(import.meta.dir, "../..");

/** The fields of a package.json that packing changes. */
export interface Manifest {
  readonly private?: boolean;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export const readManifest = (name: string): Promise<Manifest> =>
  Bun.file(join(ROOT, "packages", name, "package.json")).json();

/** Exports of sources as exports of what the compiler makes of them. */
export function builtExports(exports: Manifest["exports"] = {}) {
  const built = (source: string, ending: string) =>
    source.replace("./src/", "./").replace(/ts$/, ending);
  const entries = Object.entries(exports).map(([name, source]) => [
    name,
    { types: built(source, "d.ts"), default: built(source, "js") },
  ]);
  return { ...Object.fromEntries(entries), "./package.json": "./package.json" };
}

/** Fills a folder, adds README and licence, and packs it as a tarball into `out`. */
export async function pack(
  name: string,
  out: string,
  fill: (folder: string) => Promise<object>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), `parley-${name}-`));
  try {
    const manifest = await fill(folder);
    await Bun.write(join(folder, "package.json"), JSON.stringify(manifest, null, 2));
    const readme = await Bun.file(join(ROOT, "packages", name, "README.md")).text();
    await Bun.write(join(folder, "README.md"), withoutLinksOut(readme));
    await cp(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
    await mkdir(out, { recursive: true });
    await $`npm pack ${folder} --pack-destination ${out}`.quiet();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Files of the repository are not in the package: of links to them only the text remains. */
const withoutLinksOut = (markdown: string) =>
  markdown.replaceAll(/\[([^\]]+)\]\(\.{1,2}\/[^)]*\)/g, "$1");

/** Compiles the TypeScript of a folder to JavaScript with declarations. */
export async function compile(source: string, built: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "parley-compile-"));
  const config = {
    extends: join(ROOT, "tsconfig.json"),
    compilerOptions: {
      target: "es2024",
      lib: ["esnext", "dom"],
      types: [],
      noEmit: false,
      declaration: true,
      allowImportingTsExtensions: false,
      rewriteRelativeImportExtensions: true,
      rootDir: "source",
      outDir: built,
    },
    include: ["source"],
    exclude: [],
  };
  try {
    await cp(source, join(folder, "source"), { recursive: true });
    await mkdir(join(folder, "node_modules"));
    for (const dependency of ["zod", "react", "@types"]) {
      await symlink(
        join(ROOT, "node_modules", dependency),
        join(folder, "node_modules", dependency),
      );
    }
    await Bun.write(join(folder, "tsconfig.json"), JSON.stringify(config));
    await $`${join(ROOT, "node_modules/.bin/tsc")} -p ${folder}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  for await (const file of new Glob("**/*.d.ts").scan({ cwd: built, absolute: true })) {
    await Bun.write(file, withoutTs(await Bun.file(file).text()));
  }
}

/** The compiler rewrites extensions in what it emits, but not in declarations. */
const withoutTs = (declarations: string) =>
  declarations.replaceAll(/"(\.{1,2}\/[^"]+)\.ts"/g, '"$1.js"');

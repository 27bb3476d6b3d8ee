#!/usr/bin/env bun
/**
 * Packs the SDK, and the contract that it is typed by, as plain JavaScript with types, to be
 * installed anywhere: `bun scripts/build-sdk.ts [dist/sdk]`.
 */
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { $ } from "bun";

const ROOT = join(import.meta.dir, "..");
/** In the order in which they depend on each other. */
const PACKAGES = ["protocol", "client"];

interface Manifest {
  private?: boolean;
  exports: Record<string, string>;
}

/** What is imported is what was built; everything else stays. */
function published({ private: _, exports, ...manifest }: Manifest): object {
  const built = (source: string, ending: string) =>
    source.replace("./src/", "./").replace(/ts$/, ending);
  const entries = Object.entries(exports).map(([name, source]) => [
    name,
    { types: built(source, "d.ts"), default: built(source, "js") },
  ]);
  return { ...manifest, exports: Object.fromEntries(entries) };
}

/** Compiles a package into `node_modules` of the folder, where the next one finds it. */
async function build(name: string, folder: string): Promise<string> {
  const source = join(ROOT, "packages", name);
  const built = join(folder, "node_modules/@parley", name);
  await cp(join(source, "src"), join(folder, name), { recursive: true });
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
      rootDir: name,
      outDir: built,
    },
    include: [name],
    exclude: [],
  };
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify(config));
  await $`${join(ROOT, "node_modules/.bin/tsc")} -p ${folder}`;
  const manifest = (await Bun.file(join(source, "package.json")).json()) as Manifest;
  await Bun.write(join(built, "package.json"), JSON.stringify(published(manifest), null, 2));
  for (const page of ["README.md", "../../LICENSE"]) {
    const file = Bun.file(join(source, page));
    if (await file.exists()) await Bun.write(join(built, page.replace("../../", "")), file);
  }
  return built;
}

const out = resolve(process.argv[2] ?? "dist/sdk");
await mkdir(out, { recursive: true });
const folder = await mkdtemp(join(tmpdir(), "parley-sdk-"));
try {
  await mkdir(join(folder, "node_modules/@parley"), { recursive: true });
  for (const dependency of ["zod", "react", "@types"]) {
    await symlink(join(ROOT, "node_modules", dependency), join(folder, "node_modules", dependency));
  }
  for (const name of PACKAGES) {
    const built = await build(name, folder);
    await $`npm pack ${built} --pack-destination ${out}`.quiet();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}

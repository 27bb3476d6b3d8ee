#!/usr/bin/env bun
/**
 * Packs the SDK as plain JavaScript with types, for other projects:
 * `bun scripts/build-sdk.ts [dist/sdk]`. The package includes the types of the contract.
 */
import { cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { $, Glob } from "bun";
import protocol from "../packages/protocol/package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "..");
const CLIENT = join(ROOT, "packages/client");
const CONTRACT = "@parley/protocol";

interface Manifest {
  private?: boolean;
  exports: Record<string, string>;
  dependencies: Record<string, string>;
}

/** The manifest of the package, whose exports are the built files. */
function publishedManifest({ private: _, exports, dependencies, ...manifest }: Manifest): object {
  const built = (source: string, ending: string) =>
    source.replace("./src/", "./").replace(/ts$/, ending);
  const entries = Object.entries(exports).map(([name, source]) => [
    name,
    { types: built(source, "d.ts"), default: built(source, "js") },
  ]);
  const { [CONTRACT]: _contract, ...others } = dependencies;
  return {
    ...manifest,
    sideEffects: false,
    exports: { ...Object.fromEntries(entries), "./package.json": "./package.json" },
    // The types of the contract need its dependencies. Nothing of the contract is loaded at run time.
    dependencies: { ...others, ...protocol.dependencies },
  };
}

/** Copies the client's sources, and those of the contract into a folder `protocol` among them. */
async function copySources(folder: string): Promise<void> {
  await cp(join(CLIENT, "src"), folder, { recursive: true });
  for await (const file of new Glob("**/*.ts").scan({ cwd: folder })) {
    const source = await Bun.file(join(folder, file)).text();
    const contract = `${"../".repeat(file.split("/").length - 1) || "./"}protocol/index.ts`;
    await Bun.write(join(folder, file), source.replaceAll(`"${CONTRACT}"`, `"${contract}"`));
  }
  await cp(join(ROOT, "packages/protocol/src"), join(folder, "protocol"), { recursive: true });
}

async function compile(folder: string, built: string): Promise<void> {
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
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify(config));
  await $`${join(ROOT, "node_modules/.bin/tsc")} -p ${folder}`;
  for await (const file of new Glob("**/*").scan({ cwd: built })) {
    const path = join(built, file);
    // Only the types of the contract are used.
    if (/^protocol\/.*\.js$/.test(file)) await rm(path);
    if (file.endsWith(".d.ts")) await Bun.write(path, withoutTs(await Bun.file(path).text()));
  }
}

/** The compiler rewrites extensions in what it emits, but not in declarations. */
const withoutTs = (declarations: string) =>
  declarations.replaceAll(/"(\.{1,2}\/[^"]+)\.ts"/g, '"$1.js"');

const out = resolve(process.argv[2] ?? "dist/sdk");
await mkdir(out, { recursive: true });
const folder = await mkdtemp(join(tmpdir(), "parley-sdk-"));
try {
  const built = join(folder, "built");
  for (const dependency of ["zod", "react", "@types"]) {
    await mkdir(join(folder, "node_modules"), { recursive: true });
    await symlink(join(ROOT, "node_modules", dependency), join(folder, "node_modules", dependency));
  }
  await copySources(join(folder, "source"));
  await compile(folder, built);
  const manifest = (await Bun.file(join(CLIENT, "package.json")).json()) as Manifest;
  await Bun.write(
    join(built, "package.json"),
    JSON.stringify(publishedManifest(manifest), null, 2),
  );
  await Bun.write(join(built, "README.md"), Bun.file(join(CLIENT, "README.md")));
  await Bun.write(join(built, "LICENSE"), Bun.file(join(ROOT, "LICENSE")));
  await $`npm pack ${built} --pack-destination ${out}`.quiet();
} finally {
  await rm(folder, { recursive: true, force: true });
}

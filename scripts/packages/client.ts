import { cp, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Glob } from "bun";
import { builtExports, compile, type Manifest, pack, ROOT, readManifest } from "./pack.ts";

const CONTRACT = "@parley/protocol";

/** Packs the SDK with its React binding. The package includes the types of the contract. */
export const packClient = (out: string) =>
  pack("client", out, async (folder) => {
    const sources = await mkdtemp(join(tmpdir(), "parley-client-"));
    try {
      await copySources(sources);
      await compile(sources, folder);
    } finally {
      await rm(sources, { recursive: true, force: true });
    }
    for await (const file of new Glob("protocol/**/*.js").scan({ cwd: folder, absolute: true })) {
      // Only the types of the contract are used.
      await rm(file);
    }
    await includeTypesOfZod(folder);
    return publishedManifest(await readManifest("client"));
  });

function publishedManifest({ private: _, exports, dependencies, ...manifest }: Manifest): object {
  const { [CONTRACT]: _contract, ...others } = dependencies ?? {};
  return {
    ...manifest,
    sideEffects: false,
    exports: builtExports(exports),
    ...(Object.keys(others).length > 0 && { dependencies: others }),
  };
}

/**
 * The types of the contract are inferred from schemas, so they need the declarations of zod, which the
 * package contains. Nothing of zod or of the contract is loaded at run time.
 */
async function includeTypesOfZod(folder: string): Promise<void> {
  const zod = join(ROOT, "node_modules/zod");
  await cp(join(zod, "v4"), join(folder, "zod/v4"), {
    recursive: true,
    filter: async (from) => (await stat(from)).isDirectory() || from.endsWith(".d.ts"),
  });
  for (const file of ["index.d.ts", "LICENSE"]) {
    await cp(join(zod, file), join(folder, "zod", file));
  }
  for await (const file of new Glob("protocol/**/*.d.ts").scan({ cwd: folder })) {
    const declarations = await Bun.file(join(folder, file)).text();
    const path = `${"../".repeat(file.split("/").length - 1)}zod/index.js`;
    await Bun.write(join(folder, file), declarations.replaceAll('"zod"', `"${path}"`));
  }
}

/** Copies the client's sources, and those of the contract into a folder `protocol` among them. */
async function copySources(folder: string): Promise<void> {
  await cp(join(ROOT, "packages/client/src"), folder, { recursive: true });
  for await (const file of new Glob("**/*.ts").scan({ cwd: folder })) {
    const source = await Bun.file(join(folder, file)).text();
    const contract = `${"../".repeat(file.split("/").length - 1) || "./"}protocol/index.ts`;
    await Bun.write(join(folder, file), source.replaceAll(`"${CONTRACT}"`, `"${contract}"`));
  }
  await cp(join(ROOT, "packages/protocol/src"), join(folder, "protocol"), { recursive: true });
}

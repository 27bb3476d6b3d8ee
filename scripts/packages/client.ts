import { cp, mkdtemp, rm } from "node:fs/promises";
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
    return publishedManifest(await readManifest("client"), await readManifest("protocol"));
  });

function publishedManifest(
  { private: _, exports, dependencies, ...manifest }: Manifest,
  protocol: Manifest,
): object {
  const { [CONTRACT]: _contract, ...others } = dependencies ?? {};
  return {
    ...manifest,
    sideEffects: false,
    exports: builtExports(exports),
    // The types of the contract need its dependencies. Nothing of the contract is loaded at run time.
    dependencies: { ...others, ...protocol.dependencies },
  };
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

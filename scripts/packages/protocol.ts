import { join } from "node:path";
import { builtExports, compile, pack, ROOT, readManifest } from "./pack.ts";

/** Packs the contract, for tools and clients that check what they send and receive. */
export const packProtocol = (out: string) =>
  pack("protocol", out, async (folder) => {
    await compile(join(ROOT, "packages/protocol/src"), folder);
    const { private: _, exports, ...manifest } = await readManifest("protocol");
    return { ...manifest, sideEffects: false, exports: builtExports(exports) };
  });

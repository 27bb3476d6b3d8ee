import { statSync } from "node:fs";
import { join } from "node:path";
import { buildWeb, typeOf, type WebFile } from "../../../web/build.ts";
import type { Logger } from "../observe/log.ts";

const WEB = join(import.meta.dir, "../../../web");
const DIST = join(WEB, "dist");

/** The files of the web client: from `dist` if that is up to date, otherwise built now, in memory. */
export async function loadWebFiles(log: Logger): Promise<WebFile[]> {
  if (isUpToDate()) return readBuild();
  try {
    return await buildWeb();
  } catch (error) {
    // Installations without the build tools serve the build they came with.
    if (builtAt() === 0) throw error;
    log.warn({ err: error }, "web client build failed, serving an earlier build");
    return readBuild();
  }
}

function readBuild(): Promise<WebFile[]> {
  const paths = [...new Bun.Glob("**/*.{html,js,css,svg,png,webmanifest}").scanSync(DIST)];
  return Promise.all(
    paths.map(async (path) => {
      const read = (suffix: string) => Bun.file(join(DIST, path + suffix)).bytes();
      const [plain, gzip, brotli] = await Promise.all([read(""), read(".gz"), read(".br")]);
      return { path: `/${path}`, type: typeOf(path), plain, gzip, brotli };
    }),
  );
}

/** Whether there is a build that is newer than all of its sources. */
function isUpToDate(): boolean {
  const built = builtAt();
  if (built === 0) return false;
  const sources = new Bun.Glob("{web,client,protocol}/{src,public}/**/*").scanSync(join(WEB, ".."));
  return ![...sources].some((path) => modifiedAt(join(WEB, "..", path)) > built);
}

const builtAt = () => modifiedAt(join(DIST, "index.html"));

/** Zero if there is no such file. */
const modifiedAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

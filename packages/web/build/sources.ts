import { join } from "node:path";

export const WEB = join(import.meta.dir, "..");

/** A file of the client before it is compressed: its URL path and its bytes. */
export interface SourceFile {
  path: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export const textFile = (path: string, text: string): SourceFile => ({
  path,
  bytes: new TextEncoder().encode(text),
});

export const textOf = ({ bytes }: Pick<SourceFile, "bytes">) => new TextDecoder().decode(bytes);

/** A script that is built on its own, with values for what it declares. */
export async function scriptOf(name: string, define: Record<string, string>): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(WEB, "src", name)],
    target: "browser",
    format: "iife",
    minify: true,
    define,
  });
  return (await outputs[0]?.text())?.trim() ?? "";
}

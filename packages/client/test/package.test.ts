import { expect, test } from "bun:test";
import { join } from "node:path";
import { startServer } from "@parley/testkit/server.ts";
import { quickStart } from "./support/quick-start.ts";

/** What can be said of the package without packing it. tests/deploy/client-package.test.ts packs it. */
const HERE = join(import.meta.dir, "..");

async function bundle(entry: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(HERE, entry)],
    target: "browser",
    minify: true,
  });
  return outputs[0]?.text() ?? "";
}

test("the SDK is as small as the README says", async () => {
  const [, stated] =
    /less than (\d+) kB gzipped/.exec(await Bun.file(join(HERE, "README.md")).text()) ?? [];
  const size = Bun.gzipSync(await bundle("src/index.ts")).length;
  expect(size).toBeLessThan(Number(stated) * 1000);
});

test("the SDK contains no third-party code", async () => {
  const code = await bundle("src/index.ts");
  expect(code).not.toMatch(/\bimport\s*[{"'*(]|\brequire\(|ZodError/);
});

test("the quick start of the README runs", async () => {
  await using server = await startServer();
  const child = Bun.spawn([process.execPath, "run", "-"], {
    cwd: HERE,
    stdin: new Blob([await quickStart(server.url)]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [printed, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect({ code: await child.exited, errors }).toEqual({ code: 0, errors: "" });
  expect(printed).toContain("You said:\n\n> Hello!");
});

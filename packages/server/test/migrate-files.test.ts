import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startS3 } from "@parley/testkit/s3.ts";
import { countMissing, migrateFiles } from "../src/commands/migrate-files.ts";
import { existingBlobs } from "../src/compose/backends.ts";
import type { FileStorage } from "../src/config/file-storage.ts";
import { openDiskBlobs } from "../src/files/disk.ts";

const root = mkdtempSync(join(tmpdir(), "parley-migrate-files-"));
const s3 = await startS3();
afterAll(async () => {
  await s3[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

const targets: Record<string, FileStorage> = {
  "a folder": { kind: "disk", folder: join(root, "shared") },
  S3: {
    kind: "s3",
    options: {
      ...s3.credentials,
      endpoint: s3.url,
      bucket: s3.bucket,
      prefix: "migrated/",
      timeoutMs: 20_000,
    },
  },
};

for (const [name, files] of Object.entries(targets)) {
  test(`migrating copies files to ${name}, each once`, async () => {
    const dataDir = join(root, name);
    const source = await openDiskBlobs(join(dataDir, "files"));
    const put = async (object: string) => {
      const path = join(source.incoming, object);
      writeFileSync(path, `bytes of ${object}`);
      await source.put(object, path);
    };
    const objects = [Bun.randomUUIDv7(), Bun.randomUUIDv7()];
    for (const object of objects) await put(object);
    await put(`${objects[0]}.preview`);
    const lines: string[] = [];
    const run = () => migrateFiles({ dataDir, files, print: (line) => void lines.push(line) });
    await run();
    const later = Bun.randomUUIDv7();
    await put(later);
    await run();
    expect(lines).toEqual(["files: 3 objects, 3 copied", "files: 4 objects, 1 copied"]);
    const copy = await existingBlobs(files);
    for (const object of [...objects, later, `${objects[0]}.preview`]) {
      const text = await new Response(await (await copy?.open(object))?.stream()).text();
      expect(text).toBe(`bytes of ${object}`);
      expect(await source.open(object)).not.toBeNull();
    }
    expect(readdirSync(source.incoming)).toEqual([]);
    const named = new Set([...objects, Bun.randomUUIDv7()]);
    expect(await countMissing(named, files)).toBe(1);
  });
}

test("files that have no place after the migration stop it", async () => {
  const dataDir = join(root, "without");
  mkdirSync(dataDir);
  const run = (files: FileStorage | null) => migrateFiles({ dataDir, files, print: () => {} });
  await run(null);
  const source = await openDiskBlobs(join(dataDir, "files"));
  await run(null);
  const path = join(source.incoming, "x");
  writeFileSync(path, "x");
  await source.put(Bun.randomUUIDv7(), path);
  await expect(run(null)).rejects.toThrow("Set PARLEY_FILES");
  await run({ kind: "disk", folder: join(dataDir, "files") });
  expect(await countMissing(new Set(["x"]), null)).toBe(1);
});

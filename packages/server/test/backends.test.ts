import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBackends } from "../src/compose/backends.ts";
import { readConfig } from "../src/config/config.ts";
import { createLogger } from "../src/observe/log.ts";
import { newAccount, newGroup } from "./support/store-contract/fixture.ts";

for (const strict of ["on", "off"]) {
  test(`with strict errors ${strict}, a unit may not change a conversation that it does not own`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "parley-backends-"));
    const config = readConfig({ PARLEY_DATA: folder, PARLEY_STRICT_ERRORS: strict });
    const { store } = await openBackends(config, "here", createLogger("silent"));
    const room = await store.write(async (tx) =>
      newGroup(tx, [await newAccount(tx, { username: "ada" })]),
    );
    const outcome = store
      .write((tx) => tx.setTitle(room.id, "new"))
      .then(
        () => "changed",
        ({ message }: Error) => message,
      );
    expect(await outcome).toBe(`the unit does not own conversation ${room.id}, which it changes`);
    await store.close();
    rmSync(folder, { recursive: true });
  });
}

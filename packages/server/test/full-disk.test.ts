import { describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { post, say, signUp } from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

/** Mounting needs root. Without it the tests are reported as skipped. */
const mayMount = process.getuid?.() === 0;

/** A data folder on a disk of its own, with this size. */
function smallDisk(megabytes: number) {
  const path = mkdtempSync(join(tmpdir(), "parley-disk-"));
  const run = (...command: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(command);
    if (exitCode !== 0) throw new Error(`${command[0]} failed: ${stderr}`);
  };
  run("mount", "-t", "tmpfs", "-o", `size=${megabytes}m`, "parley-test", path);
  const ballast = join(path, "ballast");
  return {
    path,
    /** Fills what is left of the disk. */
    fill: () => void Bun.spawnSync(["dd", "if=/dev/zero", `of=${ballast}`, "bs=4k"]),
    free: () => rmSync(ballast),
    remount: (mode: "ro" | "rw") => run("mount", "-o", `remount,${mode}`, path),
    [Symbol.dispose]() {
      run("umount", path);
      rmSync(path, { recursive: true });
    },
  };
}

const readiness = async (url: string) => {
  const response = await fetch(`${url}/ready`);
  return { status: response.status, body: await response.json() };
};

const failuresOf = async (url: string) => {
  const page = await (await fetch(`${url}/metrics`)).text();
  return Number(/background_failures_total\{kind="writes"\} (\d+)/.exec(page)?.[1]);
};

describe.skipIf(!mayMount)("a disk that is full", () => {
  test("is told to clients and operators, and the server works again once it has space", async () => {
    using disk = smallDisk(24);
    await using server = await startServer({ ...noRates, PARLEY_DATA: join(disk.path, "data") });
    const alice = await signUp(server.url);
    const chat = await alice.call("startChat", { usernames: [], kind: "group" });
    const content = "a".repeat(4000);
    const send = () => post(server.url, "sendMessage", { chat_id: chat.id, content }, alice.token);
    await send();
    disk.fill();
    let answer = await send();
    while (answer.status === 200) answer = await send();
    expect(answer.status).toBe(503);
    expect(answer.body).toMatchObject({
      ok: false,
      code: "unavailable",
      parameters: { retry_after: expect.any(Number) },
    });
    const { status, body } = await readiness(server.url);
    expect({ status, failing: body.failing }).toEqual({
      status: 200,
      failing: expect.arrayContaining(["writes"]),
    });
    expect(await failuresOf(server.url)).toBeGreaterThan(0);
    await server.printed(/"store writes failed"/);
    // Reading goes on.
    const history = await alice.call("getChatHistory", { chat_id: chat.id });
    expect(history.items.length).toBeGreaterThan(0);
    disk.free();
    const sent = await say(alice, chat, "There is space again.");
    expect((await readiness(server.url)).body.failing ?? []).not.toContain("writes");
    await server.kill();
    await server.restart();
    const { items } = await alice.at(server.url).call("getChatHistory", { chat_id: chat.id });
    expect(items.map(({ id }) => id)).toContain(sent.id);
  });
});

test("a database that is moved away while the server runs takes no further writes", async () => {
  await using server = await startServer(noRates);
  const alice = await signUp(server.url);
  const chat = await alice.call("startChat", { usernames: [], kind: "group" });
  const path = join(server.dataDir, "parley.db");
  renameSync(path, `${path}-elsewhere`);
  writeFileSync(path, "");
  const input = { chat_id: chat.id, content: "lost?" };
  const answer = await post(server.url, "sendMessage", input, alice.token);
  expect(answer).toMatchObject({ status: 503, body: { code: "unavailable" } });
  expect((await readiness(server.url)).status).toBe(503);
  await server.printed(/the database file was moved or deleted/);
});

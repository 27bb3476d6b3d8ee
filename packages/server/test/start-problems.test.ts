import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signUp } from "@parley/testkit/client.ts";
import { sharedPostgres } from "@parley/testkit/postgres.ts";
import { type Environment, runMain, startServer } from "@parley/testkit/server.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-start-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a start that is refused prints: one sentence that names the setting, and no stack. */
async function refusal(env: Environment): Promise<string> {
  const given = { PORT: "0", PARLEY_DATA: join(folder, "data"), ...env };
  const { code, stdout, stderr } = await runMain([], given);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^(PARLEY_|HOST|DATABASE_URL)[^\n]*[.?]\n$/);
  expect(stderr).not.toContain("hidden");
  return stderr;
}

/** A data folder whose database has a provider key. */
async function dataWithKey(): Promise<string> {
  const PARLEY_DATA = mkdtempSync(join(folder, "sealed-"));
  await using server = await startServer({ PARLEY_DATA });
  const alice = await signUp(server.url, "alice");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  await server.stop();
  const kept = `${PARLEY_DATA}-kept`;
  Bun.spawnSync(["cp", "-a", PARLEY_DATA, kept]);
  return kept;
}

test("a start without the master key of what is stored is refused and generates no other one", async () => {
  const dataDir = await dataWithKey();
  const file = join(dataDir, "master.key");
  rmSync(file);
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain(`${file} does not exist`);
  expect(existsSync(file)).toBe(false);
  const other = Buffer.alloc(32, 3).toString("base64");
  writeFileSync(file, other, { mode: 0o600 });
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain(`${file} does not open`);
  const given = { PARLEY_DATA: dataDir, PARLEY_MASTER_KEY: other };
  expect(await refusal(given)).toContain("PARLEY_MASTER_KEY does not open");
});

test("keys rotate --discard lets a server start whose master key is lost", async () => {
  const dataDir = await dataWithKey();
  rmSync(join(dataDir, "master.key"));
  const refused = await runMain(["keys", "rotate"], { PARLEY_DATA: dataDir });
  expect(refused.stderr).toMatch(
    /^PARLEY_MASTER_KEY is not set, and .*"parley keys rotate --discard"/,
  );
  const { stdout } = await runMain(["keys", "rotate", "--discard", "--json"], {
    PARLEY_DATA: dataDir,
  });
  expect(JSON.parse(stdout)).toEqual({ resealed: 0, kept: 0, discarded: 1 });
  await using server = await startServer({ PARLEY_DATA: dataDir });
  const bob = await signUp(server.url, "bob");
  await bob.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
});

test("a start on an empty file in place of the database is refused", async () => {
  const dataDir = await dataWithKey();
  const path = join(dataDir, "parley.db");
  truncateSync(path);
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain(`${path} is empty: restore`);
});

test("a start without the database that was there is refused", async () => {
  const dataDir = await dataWithKey();
  const path = join(dataDir, "parley.db");
  for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain(`${path} is gone: restore`);
  expect(existsSync(path)).toBe(false);
  rmSync(`${path}-mark`);
  await using server = await startServer({ PARLEY_DATA: dataDir });
  await signUp(server.url, "alice");
});

test("a misspelled field of a setting is refused with the nearest name", async () => {
  const limits = await refusal({ PARLEY_LIMITS: '{"page_sise":5}' });
  expect(limits).toContain('"page_sise". Did you mean "page_size"?');
  const policy = await refusal({ PARLEY_POLICY: '{"directry":"none"}' });
  expect(policy).toContain('"directry". Did you mean "directory"?');
});

test("a start with a file of the master key that cannot be used is refused", async () => {
  const dataDir = await dataWithKey();
  const file = join(dataDir, "master.key");
  writeFileSync(file, "no key");
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain(`${file} has no master keys`);
  rmSync(file);
  mkdirSync(file);
  expect(await refusal({ PARLEY_DATA: dataDir })).toContain("it is a folder: name a file");
});

test("a server that is killed right after its first start starts again", async () => {
  await using server = await startServer();
  await server.kill();
  await server.restart();
});

test("a start that migrates the database says from which version to which", async () => {
  const dataDir = mkdtempSync(join(folder, "older-"));
  const older = join(import.meta.dir, "../../../tests/fixtures/0.1.0");
  for (const file of ["parley.db", "master.key"])
    copyFileSync(join(older, file), join(dataDir, file));
  const version = () => {
    using db = new Database(join(dataDir, "parley.db"), { readonly: true });
    return db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version;
  };
  const from = version();
  await using server = await startServer({ PARLEY_DATA: dataDir, PARLEY_LOG: "info" });
  const [line = ""] = await server.printed(/\{.*"database migrated".*\}/);
  expect(JSON.parse(line)).toMatchObject({ from, to: version() });
});

test("a database that is no database stops the start with what to do", async () => {
  const PARLEY_DATA = mkdtempSync(join(folder, "broken-"));
  writeFileSync(join(PARLEY_DATA, "parley.db"), "no database, but long enough to be read as one");
  expect(await refusal({ PARLEY_DATA })).toContain("it is damaged");
  rmSync(join(PARLEY_DATA, "parley.db"));
  mkdirSync(join(PARLEY_DATA, "parley.db"));
  expect(await refusal({ PARLEY_DATA })).toContain("check that it is a file");
});

test("an address that cannot be listened on stops the start with what to do", async () => {
  expect(await refusal({ HOST: "192.0.2.7" })).toContain("no address of this machine");
  expect(await refusal({ HOST: "no host" })).toContain("no address of this machine");
  const taken = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  expect(await refusal({ PORT: `${taken.port}` })).toContain("another program listens there");
  await taken.stop(true);
});

test("a database server that does not answer stops the start with its address and no password", async () => {
  const DATABASE_URL = "postgres://parley:hidden@127.0.0.1:1/parley";
  expect(await refusal({ DATABASE_URL })).toContain("nothing answers at 127.0.0.1:1");
});

test("a database server that refuses stops the start with its reason and no password", async () => {
  await using postgres = await sharedPostgres();
  const { host } = new URL(postgres.url);
  for (const [DATABASE_URL, reason] of [
    [`postgres://parley:hidden@${host}/nowhere`, 'database "nowhere" does not exist'],
    [`postgres://nobody:hidden@${host}/postgres`, 'role "nobody" does not exist'],
  ] as const) {
    const remedy = "correct the user, the password or the name";
    expect(await refusal({ DATABASE_URL })).toContain(`${reason}: ${remedy}.`);
  }
});

test("a folder that cannot be used stops the start with the reason", async () => {
  const file = join(folder, "a-file");
  writeFileSync(file, "");
  expect(await refusal({ PARLEY_DATA: file })).toContain("it is a file: name a folder");
  // In /sys nobody may create folders.
  const refused = "who runs this, may not use it: change its owner or its mode";
  expect(await refusal({ PARLEY_DATA: "/sys/parley" })).toContain(refused);
  expect(await refusal({ PARLEY_FILES: "disk:/sys/parley" })).toContain(refused);
  expect(await refusal({ PARLEY_FILES: `disk:${file}` })).toStartWith("PARLEY_FILES must be");
  const named = { PARLEY_SERVICE_KEY_FILE: join(folder, "missing") };
  expect(await refusal(named)).toContain("it does not exist");
});

test("providers that are described wrongly stop the start with the field and no value", async () => {
  const refusalOf = (providers: unknown) =>
    refusal({ PARLEY_PROVIDERS: JSON.stringify(providers) });
  expect(await refusalOf({ claude: { model: "hidden" } })).toContain("claude.display_name");
  const fields = {
    display_name: "Claude",
    protocol: "anthropic",
    base_url: "https://a.example",
    model: "m",
  };
  const unknown = await refusalOf({ claude: { ...fields, api_key: "hidden" } });
  expect(unknown).toContain("claude has the unknown field api_key; its fields are display_name");
  const wrong: Record<string, string> = {
    protocol: '"anthropic" or "openai"',
    base_url: "an http or https address",
    max_output_tokens: "a whole number above 0",
    tools: "true or false",
  };
  for (const [field, problem] of Object.entries(wrong)) {
    const given = { claude: { ...fields, [field]: "hidden" } };
    expect(await refusalOf(given)).toContain(`claude.${field} must be ${problem}.`);
  }
  expect(await refusalOf([])).toContain("must be a JSON object.");
  const missing = await refusal({ PARLEY_PROVIDERS: join(folder, "missing.json") });
  expect(missing).toContain("no file has this path");
});

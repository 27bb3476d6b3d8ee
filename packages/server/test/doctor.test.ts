import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addSecondFactor } from "@parley/testkit/authenticator.ts";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { type Person, say, search, signUp } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { upload } from "@parley/testkit/files.ts";
import { Issuer } from "@parley/testkit/issuer.ts";
import { startNats } from "@parley/testkit/nats.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { executable } from "@parley/testkit/program.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { type Environment, runMain, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";
import type { Check } from "../src/commands/doctor/check.ts";

const provider = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch: () => new Response(null, { status: 404 }),
});
const reachable = providersAt(provider.url.origin);
const folder = mkdtempSync(join(tmpdir(), "parley-doctor-"));

afterAll(async () => {
  await provider.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

async function examine(env: Environment, ...options: string[]) {
  return examineAs([], env, ...options);
}

/** Examines with a program in front that changes the user. */
async function examineAs(as: readonly string[], env: Environment, ...options: string[]) {
  const { code, stdout } = await runMain(
    ["doctor", "--json", ...options],
    { PORT: "0", ...reachable, ...env },
    [...as, executable()],
  );
  const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: Check[] };
  expect(code).toBe(ok ? 0 : 1);
  return { ok, checks, problems: checks.filter(({ status }) => status !== "ok") };
}

let count = 0;
/** A data folder of a server that has stopped, with a message, a provider key, a webhook and a second factor. */
let template: string;

beforeAll(async () => {
  await using server = await startServer(serviceKeySetting());
  const alice = await signUp(server.url, "alice");
  await sealEverything(server.url, alice);
  const chat = await alice.call("startChat", { usernames: [], kind: "group" });
  await say(alice, chat, "Hello!");
  const found = () => search(alice, { query: "Hello" });
  await until(async () => (await found()).items.length > 0, "the message in the search index");
  await server.stop();
  template = join(folder, "template");
  cpSync(server.dataDir, template, { recursive: true });
  chmodSync(template, 0o700);
});

/** Stores one of everything that is sealed with the master key. */
async function sealEverything(url: string, person: Person): Promise<void> {
  await person.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  await new Backend(url).call("createWebhook", { url: "https://1.1.1.1/hook", events: [] });
  await addSecondFactor(person, "correct horse battery");
}
const ALL_SEALED = "1 provider keys, 1 webhook secrets, 1 second factors";

function freshData(): string {
  const dataDir = join(folder, `data-${++count}`);
  cpSync(template, dataDir, { recursive: true });
  chmodSync(dataDir, 0o700);
  return dataDir;
}

/** Without the files that SQLite makes for whoever has the database open. */
const namesIn = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => !/-(wal|shm)$/.test(name));

const failure = (name: string, message: RegExp, todo: RegExp): Check => ({
  name,
  status: "failed",
  message: expect.stringMatching(message),
  todo: expect.stringMatching(todo),
});

describe("parley doctor in an installation in order", () => {
  test("passes every check while the server runs, and nothing is changed", async () => {
    await using server = await startServer({ PARLEY_DATA: freshData(), ...reachable });
    const state = () =>
      namesIn(server.dataDir).map((name) => {
        const { mode, size } = statSync(join(server.dataDir, name));
        return [name, mode, size];
      });
    const before = state();
    const env = { PARLEY_DATA: server.dataDir, PORT: new URL(server.url).port };
    const { ok, checks, problems } = await examine(env);
    expect({ ok, problems }).toEqual({ ok: true, problems: [] });
    expect(checks.map(({ name }) => name)).toEqual([
      "settings",
      "data folder",
      "file permissions",
      "disk",
      "store",
      "integrity",
      "master key",
      "clock",
      "files",
      "bus",
      "provider claude",
      "provider gpt",
      "port",
    ]);
    expect(checks.at(-1)?.message).toContain(`the server runs at ${server.url}`);
    expect(state()).toEqual(before);
  });

  test("warns if the server at the port has another data folder, as during a drill of a restore", async () => {
    await using server = await startServer();
    const env = { PARLEY_DATA: freshData(), PORT: new URL(server.url).port, ...reachable };
    expect((await examine(env)).problems).toEqual([
      {
        ...failure("port", /has another data folder/, /PARLEY_DATA.*PORT/),
        status: "warning",
      },
    ]);
  });

  test("passes while no server runs, prints one line per check, and changes nothing", async () => {
    const dataDir = freshData();
    const env = { PARLEY_DATA: dataDir, PORT: "0", ...reachable };
    const contentOf = (name: string) => {
      const path = join(dataDir, name);
      return statSync(path).isFile() ? Bun.hash(readFileSync(path)) : readdirSync(path);
    };
    const state = () => namesIn(dataDir).map((name) => [name, contentOf(name)]);
    const before = state();
    const { code, stdout, stderr } = await runMain(["doctor"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(
      /^ok +master key +\S+ opens all 1 provider keys, 1 webhook secrets, 1 second factors$/m,
    );
    expect(stdout).toEndWith("\nEverything is in order.\n");
    expect(stdout.split("\n").length).toBe(15);
    expect(state()).toEqual(before);
  });

  test("has only warnings before the first start, and changes nothing", async () => {
    const dataDir = join(folder, "not-yet");
    const { ok, problems } = await examine({ PARLEY_DATA: dataDir });
    expect(ok).toBe(true);
    expect(problems).toEqual([expect.objectContaining({ name: "data folder", status: "warning" })]);
    expect(readdirSync(folder)).not.toContain("not-yet");
  });

  test("skips the integrity check with --fast", async () => {
    const { checks } = await examine({ PARLEY_DATA: freshData() }, "--fast");
    expect(checks.map(({ name }) => name)).not.toContain("integrity");
  });
});

describe("parley doctor finds, and says what to do about", () => {
  test("a wrong setting", async () => {
    const { problems } = await examine({ PARLEY_PROXIES: "many" });
    expect(problems).toEqual([failure("settings", /^PARLEY_PROXIES must be/, /Correct it/)]);
  });

  test("an unusable file of the operator's key, whose content is not shown", async () => {
    const file = join(folder, "operator-key");
    const env = {
      PARLEY_DATA: freshData(),
      ...providersAt(provider.url.origin, { api_key_file: file }),
    };
    const name = /^PARLEY_PROVIDERS claude\.api_key_file /;
    expect((await examine(env)).problems).toEqual([failure("settings", name, /Correct it/)]);
    writeFileSync(file, "two hidden-key\nlines");
    const malformed = await examine(env);
    expect(malformed.problems).toEqual([failure("settings", name, /Correct it/)]);
    writeFileSync(file, "a-hidden-key\n");
    const correct = await examine(env);
    expect(correct.problems).toEqual([]);
    expect(correct.checks.find((check) => check.name === "provider claude")?.message).toEndWith(
      "the operator's key is read from its file",
    );
    expect(JSON.stringify([malformed, correct])).not.toContain("hidden-key");
  });

  test("files and a folder that others can read, whose remedies work", async () => {
    const dataDir = freshData();
    chmodSync(dataDir, 0o755);
    chmodSync(join(dataDir, "master.key"), 0o644);
    const { ok, problems } = await examine({ PARLEY_DATA: dataDir });
    expect(ok).toBe(false);
    expect(problems.map(({ name, status }) => [name, status])).toEqual([
      ["data folder", "warning"],
      ["file permissions", "failed"],
    ]);
    follow(problems);
    expect((await examine({ PARLEY_DATA: dataDir })).problems).toEqual([]);
  });

  test.skipIf(process.getuid?.() !== 0)("files of another user, whose remedy works", async () => {
    const dataDir = freshData();
    chownSync(join(dataDir, "parley.db"), 12_345, 12_345);
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([
      failure("file permissions", /parley\.db do not belong/, /chown -R 0/),
    ]);
    follow(problems);
    expect((await examine({ PARLEY_DATA: dataDir })).problems).toEqual([]);
  });

  test("a master key that is lost or another one", async () => {
    const dataDir = freshData();
    const other = { PARLEY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") };
    const replaced = await examine({ PARLEY_DATA: dataDir, ...other });
    expect(replaced.problems).toEqual([
      failure(
        "master key",
        /does not open 1 of 1 provider keys, 1 of 1 webhook secrets, 1 of 1 second factors/,
        /Put back/,
      ),
    ]);
    rmSync(join(dataDir, "master.key"));
    const lost = await examine({ PARLEY_DATA: dataDir });
    expect(lost.problems).toEqual([
      failure("master key", new RegExp(`has no key for ${ALL_SEALED}`), /Put back/),
    ]);
  });

  test("a newer schema", async () => {
    const dataDir = freshData();
    change(dataDir, "PRAGMA user_version = 10000");
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([failure("store", /schema 10000: written by a newer/, /Install/)]);
  });

  test("a damaged database", async () => {
    const dataDir = freshData();
    const path = join(dataDir, "parley.db");
    const bytes = readFileSync(path);
    const page = rootPage(path, "members") - 1;
    bytes.fill(0xff, 4096 * page, 4096 * (page + 1));
    writeFileSync(path, bytes);
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([failure("integrity", /damaged/, /restore a backup/)]);
    writeFileSync(path, "not a database");
    const { problems: worse } = await examine({ PARLEY_DATA: dataDir });
    expect(worse).toEqual([failure("store", /cannot be read/, /restore a backup/)]);
  });

  test("a clock that went back", async () => {
    const dataDir = freshData();
    change(dataDir, `UPDATE messages SET created_at = ${Date.now() + 3_600_000}`);
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([failure("clock", /before the newest message/, /NTP/)]);
  });

  test("a provider that cannot be reached, which fails only if somebody uses it", async () => {
    const closed = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const url = closed.url.origin;
    await closed.stop(true);
    const env = { PARLEY_DATA: freshData(), ...providersAt(url) };
    // The data has a key of the sandbox for one of them.
    const unused = await examine(env);
    expect(unused.ok).toBe(true);
    expect(unused.problems).toMatchObject([
      {
        name: "provider claude",
        status: "warning",
        message: expect.stringContaining("nobody has stored a key"),
      },
      { name: "provider gpt", status: "warning" },
    ]);
    await using server = await startServer(env);
    const bob = await signUp(server.url, "bob");
    await bob.call("setAgentKey", { provider: "gpt", api_key: "sk-0123456789" });
    const used = await examine(env);
    expect(used.problems).toMatchObject([
      { name: "provider claude", status: "warning" },
      failure("provider gpt", /cannot be reached/, /outgoing connections/),
    ]);
  });

  test.skipIf(process.getuid?.() !== 0).each([
    ["parley.db", 0o400, [/^parley\.db cannot be written/]],
    ["master.key", 0o000, [/^master\.key cannot be written/, /master\.key cannot be read/]],
    ["", 0o500, [/data-\d+ cannot be written/, /parley\.db cannot be read/]],
  ] as const)("that its user may not use /%s", async (name, mode, messages) => {
    const dataDir = freshData();
    const user = 12_345;
    chmodSync(folder, 0o755);
    for (const each of ["", ...readdirSync(dataDir)]) chownSync(join(dataDir, each), user, user);
    chmodSync(join(dataDir, name), mode);
    const as = ["setpriv", `--reuid=${user}`, "--clear-groups"];
    const { problems } = await examineAs(as, { PARLEY_DATA: dataDir });
    expect(problems.map(({ message }) => message)).toEqual(
      messages.map((message) => expect.stringMatching(message)),
    );
    expect(problems[0]?.todo).toStartWith(
      "User 12345, who runs this, may not use it: change its owner or its mode.",
    );
  });

  test("a database that is gone", async () => {
    const dataDir = freshData();
    for (const name of ["parley.db", "parley.db-wal", "parley.db-shm"]) {
      rmSync(join(dataDir, name), { force: true });
    }
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([failure("store", /parley\.db is gone/, /Restore a backup/)]);
  });

  test("a database that lost its content, whose log it leaves as it is", async () => {
    const dataDir = freshData();
    const log = join(dataDir, "parley.db-wal");
    writeFileSync(log, "what was written last", { mode: 0o600 });
    truncateSync(join(dataDir, "parley.db"));
    const { problems } = await examine({ PARLEY_DATA: dataDir });
    expect(problems).toEqual([failure("store", /parley\.db is empty/, /Restore a backup/)]);
    expect(readFileSync(log, "utf8")).toBe("what was written last");
  });

  test("a database without content, while lists without entries are no problem", async () => {
    const dataDir = join(folder, "no-content");
    mkdirSync(dataDir, { mode: 0o700 });
    writeFileSync(join(dataDir, "parley.db"), "", { mode: 0o600 });
    const { checks, problems } = await examine({ PARLEY_DATA: dataDir, PARLEY_PROVIDERS: "{}" });
    expect(problems).toEqual([failure("store", /parley\.db is empty/, /Restore a backup/)]);
    expect(checks).toContainEqual({ name: "providers", status: "ok", message: "none", todo: "" });
  });

  test("a setting with a misspelled name", async () => {
    const { problems } = await examine({ PARLEY_SIGN_UP: "closed" });
    expect(problems).toEqual([failure("settings", /^PARLEY_SIGN_UP .*"PARLEY_SIGNUP"/, /Correct/)]);
  });

  test("an OIDC issuer that has another name", async () => {
    const issuer = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ issuer: "https://other.example.com" }),
    });
    const env = { PARLEY_OIDC_ISSUER: issuer.url.origin, PARLEY_OIDC_AUDIENCE: "parley" };
    const { problems } = await examine({ PARLEY_DATA: freshData(), ...env });
    await issuer.stop(true);
    expect(problems).toEqual([
      failure("OIDC issuer", /names another issuer/, /https:\/\/other\.example\.com/),
    ]);
  });

  test("an OIDC issuer with which nobody could sign in", async () => {
    using issuer = new Issuer();
    const env = {
      PARLEY_DATA: freshData(),
      PARLEY_OIDC_ISSUER: issuer.url,
      PARLEY_OIDC_CLIENT_ID: "parley",
    };
    const { checks, problems: none } = await examine(env);
    expect(none).toEqual([]);
    expect(checks.find(({ name }) => name === "OIDC client")?.message).toContain("/sign-in");
    issuer.description = {
      code_challenge_methods_supported: ["plain"],
      scopes_supported: ["openid"],
      claims_supported: ["sub", "email"],
    };
    const { problems } = await examine(env);
    const warned = (message: string, todo: string) => ({
      name: "OIDC client",
      status: "warning" as const,
      message: expect.stringContaining(message),
      todo: expect.stringContaining(todo),
    });
    expect(problems).toEqual([
      warned("S256", "PKCE"),
      warned("profile", "PARLEY_OIDC_SCOPES"),
      warned("preferred_username", "PARLEY_OIDC_USERNAME_CLAIM"),
    ]);
    issuer.description = { token_endpoint: undefined };
    expect((await examine(env)).problems).toEqual([
      failure("OIDC client", /token_endpoint/, /authorization code flow/),
    ]);
  });

  test("passwords that are switched off with nothing in their place", async () => {
    const env = { PARLEY_DATA: freshData(), PARLEY_PASSWORD_SIGN_IN: "off" };
    const { ok, problems } = await examine(env);
    expect(ok).toBe(true);
    expect(problems).toMatchObject([{ name: "sign-in", status: "warning" }]);
  });

  test("ports that another program uses", async () => {
    const port = `${provider.port}`;
    const env = { PARLEY_DATA: freshData(), PORT: port, PARLEY_METRICS_PORT: port };
    const { problems } = await examine(env);
    expect(problems).toEqual([
      failure("port", /another program uses/, /PORT/),
      failure("metrics port", /another program uses/, /PARLEY_METRICS_PORT/),
    ]);
  });
});

/** Runs the commands that the problems advise. */
function follow(problems: readonly Check[]): void {
  for (const { todo } of problems) {
    const [, line = ""] = /^Run: (.*)$/.exec(todo) ?? [];
    expect(Bun.spawnSync(line.split(" ")).exitCode).toBe(0);
  }
}

function rootPage(path: string, table: string): number {
  using db = new Database(path);
  const found = db.query<{ rootpage: number }, [string]>(
    "SELECT rootpage FROM sqlite_schema WHERE name = ?",
  );
  return found.get(table)?.rootpage ?? 0;
}

function change(dataDir: string, sql: string): void {
  using db = databaseOf({ dataDir });
  db.run(sql);
}

test("parley doctor finds a file storage that cannot be used", async () => {
  const env = {
    PARLEY_DATA: freshData(),
    PARLEY_FILES: "s3://bucket/files?endpoint=http://127.0.0.1:1&timeout=2",
    AWS_ACCESS_KEY_ID: "id",
    AWS_SECRET_ACCESS_KEY: "secret-three",
  };
  const { checks } = await examine(env, "--fast");
  const found = checks.find(({ name }) => name === "files");
  expect(found).toMatchObject({ status: "failed", todo: expect.stringContaining("credentials") });
  expect(JSON.stringify(checks)).not.toContain("secret-three");
});

/** Expects a folder of files without its disk to be found, and the remedy to work. */
async function expectUnmountedFound(env: Environment): Promise<void> {
  const before = { ...env, PARLEY_FILES: `disk:${join(folder, `disk-${++count}`, "files")}` };
  const filesOf = async () => (await examine(before, "--fast")).checks.filter(isAboutFiles);
  await using server = await startServer(before);
  const alice = await signUp(server.url, `alice_${count}`);
  const chat = await alice.call("startChat", { usernames: [], kind: "group" });
  await upload(alice, chat.id, "notes.txt", Buffer.from("hello"));
  expect(await filesOf()).toEqual([expect.objectContaining({ status: "ok" })]);
  const disk = before.PARLEY_FILES.slice("disk:".length);
  rmSync(join(disk, ".."), { recursive: true });
  const unmounted = failure("files", /empty or missing, although people have sent files/, /Mount/);
  expect(await filesOf()).toEqual([unmounted]);
  mkdirSync(join(disk, "incoming"), { recursive: true });
  expect(await filesOf()).toEqual([expect.objectContaining({ status: "ok" })]);
}
const isAboutFiles = ({ name }: Check) => name === "files";

test("parley doctor finds that the disk of the files is not mounted", () =>
  expectUnmountedFound({ PARLEY_DATA: freshData() }));

describe("parley doctor with PostgreSQL and NATS", () => {
  let postgres: SharedPostgres;
  const PARLEY_MASTER_KEY = Buffer.alloc(32, 7).toString("base64");

  beforeAll(async () => {
    postgres = await sharedPostgres();
  });
  afterAll(() => postgres[Symbol.asyncDispose]());

  test("passes every check", async () => {
    await using nats = await startNats();
    const { url } = await postgres.database();
    const env = { DATABASE_URL: url, NATS_URL: nats.url, PARLEY_MASTER_KEY };
    const fresh = await examine(env);
    expect(fresh.problems).toEqual([]);
    await using server = await startServer({ ...env, ...serviceKeySetting() });
    await sealEverything(server.url, await signUp(server.url));
    const { checks, problems } = await examine({ ...env, PORT: new URL(server.url).port });
    expect(problems).toEqual([]);
    const found = Object.fromEntries(checks.map(({ name, message }) => [name, message]));
    expect(found.store).toMatch(/^PostgreSQL \d+.*, schema \d+$/);
    expect(found["master key"]).toContain(`opens all ${ALL_SEALED}`);
    expect(found.clock).toBe("in sync with the database's");
    expect(found.bus).toMatch(/^NATS \S+ answers within \d+ ms$/);
  });

  test("finds that neither can be reached, and shows no password", async () => {
    const env = {
      DATABASE_URL: "postgres://parley:secret-one@127.0.0.1:1/parley",
      NATS_URL: "nats://parley:secret-two@127.0.0.1:1",
      PARLEY_MASTER_KEY,
    };
    const { problems } = await examine(env);
    expect(problems).toEqual([
      failure("store", /PostgreSQL cannot be used/, /DATABASE_URL/),
      failure("bus", /NATS cannot be used/, /NATS_URL/),
    ]);
    expect(JSON.stringify(problems)).not.toContain("hidden-key");
  });

  test("finds that the disk of the files is not mounted", async () => {
    const { url } = await postgres.database();
    await expectUnmountedFound({ DATABASE_URL: url, PARLEY_MASTER_KEY });
  });

  test("finds that the clocks differ", async () => {
    const { url } = await postgres.database();
    const name = new URL(url).pathname.slice(1);
    await using sql = new Bun.SQL(url);
    await sql.unsafe(
      `CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
         AS $$ SELECT pg_catalog.clock_timestamp() + interval '1 minute' $$`,
    );
    await sql.unsafe(`ALTER DATABASE "${name}" SET search_path = public, pg_catalog`);
    const { problems } = await examine({ DATABASE_URL: url, PARLEY_MASTER_KEY });
    expect(problems).toEqual([failure("clock", /^(59|60)\.\d s behind the database's$/, /NTP/)]);
  });
});

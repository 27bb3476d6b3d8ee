import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentOf, answerTo, say, search, signUp } from "@parley/testkit/client.ts";
import { startServer } from "@parley/testkit/server.ts";
import manifest from "../../packages/server/package.json" with { type: "json" };

const SCRIPT = join(import.meta.dir, "../../scripts/build-executable.ts");
const folder = mkdtempSync(join(tmpdir(), "parley-executable-"));
const out = join(folder, "out");
const program = [join(out, "parley")];

beforeAll(async () => {
  const build = Bun.spawn([process.execPath, SCRIPT, ...program], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const errors = await build.stderr.text();
  expect({ code: await build.exited, errors }).toMatchObject({ code: 0 });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the executable is one file", () => {
  expect(readdirSync(out)).toEqual(["parley"]);
});

test("the executable contains the web client and the reference", async () => {
  await using server = await startServer({}, program);
  const page = await (await fetch(`${server.url}/`)).text();
  const assets = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  expect(assets.length).toBeGreaterThan(2);
  for (const path of assets) {
    const asset = await fetch(`${server.url}${path}`, { headers: { "accept-encoding": "br" } });
    expect({ path, status: asset.status }).toEqual({ path, status: 200 });
    expect(asset.headers.get("content-encoding")).toBe("br");
    expect((await asset.text()).length).toBeGreaterThan(0);
  }
  expect(await (await fetch(`${server.url}/docs`)).text()).toContain("sendMessage");
});

test("agents answer, and search finds their answers", async () => {
  await using server = await startServer({}, program);
  const alice = await signUp(server.url, "alice");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
  await using socket = await alice.connect();
  const answer = await answerTo(socket, await say(alice, chat, "Hello!"));
  expect(answer.content).toContain("sandbox");
  const { items } = await search(alice, { query: "sandbox" });
  expect(items.map(({ message }) => message.id)).toEqual([answer.id]);
  expect(await server.stop()).toBe(0);
});

/** Runs the ready command for a port, in another folder if one is given. */
const ready = (url: string, cwd = folder) =>
  Bun.spawn([...program, "ready"], { cwd, env: { PORT: new URL(url).port }, stderr: "ignore" })
    .exited;

test("the ready command checks the server with the same settings", async () => {
  await using server = await startServer({}, program);
  expect(await ready(server.url)).toBe(0);
  await server.stop();
  expect(await ready(server.url)).toBe(1);
});

test("the executable has the help of all commands and the version of the package", () => {
  const run = (...args: string[]) => Bun.spawnSync([...program, ...args], { cwd: folder, env: {} });
  expect(run("--version").stdout.toString()).toBe(`parley ${manifest.version}\n`);
  expect(run("--help").stdout.toString()).toContain("users reset");
  expect(run("help", "users", "reset").stdout.toString()).toContain("<username>");
  expect(run("nonsense").exitCode).toBe(2);
  expect(readdirSync(folder)).toEqual(["out"]);
});

test("the doctor of the executable finds nothing wrong with a running server", async () => {
  await using server = await startServer({}, program);
  const env = {
    PARLEY_DATA: server.dataDir,
    PORT: new URL(server.url).port,
    PARLEY_PROVIDERS: "{}",
  };
  const { stdout, exitCode } = Bun.spawnSync([...program, "doctor"], { cwd: folder, env });
  expect(stdout.toString()).toContain("Everything is in order.");
  expect(exitCode).toBe(0);
});

test("the executable backs up a running server and restores the backup", async () => {
  await using server = await startServer({}, program);
  const run = (dataDir: string, ...args: string[]) =>
    Bun.spawnSync([...program, ...args], { cwd: folder, env: { PARLEY_DATA: dataDir } });
  const file = join(folder, "backup.tar");
  expect(run(server.dataDir, "backup", file).exitCode).toBe(0);
  expect(run(join(folder, "restored"), "restore", file).exitCode).toBe(0);
  expect(readdirSync(join(folder, "restored"))).toContain("parley.db");
});

test("files in the working directory do not change its settings", async () => {
  await using server = await startServer({}, program);
  const here = mkdtempSync(join(folder, "here-"));
  await Bun.write(join(here, ".env"), "PARLEY_LOG=nonsense\n");
  expect(await ready(server.url, here)).toBe(0);
});

import { expect, test } from "bun:test";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentOf, answerTo, post, say, search, signUp } from "@parley/testkit/client.ts";
import { linkOf, upload } from "@parley/testkit/files.ts";
import { SOURCES, startServer } from "@parley/testkit/server.ts";

test("the start makes secrets in the data folder private", async () => {
  await using server = await startServer({ PARLEY_SIGNUP: "invite" });
  await server.stop();
  const secrets = ["master.key", "invite-code"].map((name) => join(server.dataDir, name));
  for (const file of secrets) chmodSync(file, 0o644);
  await server.restart();
  for (const file of secrets) expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("the server does not take a disk of files that is not mounted for an empty one", async () => {
  const parent = mkdtempSync(join(tmpdir(), "parley-disk-"));
  const disk = join(parent, "disk");
  mkdirSync(disk);
  await using server = await startServer({ PARLEY_FILES: `disk:${disk}` });
  const alice = await signUp(server.url);
  const chat = await alice.call("startChat", { usernames: [], kind: "group" });
  // Without stored files, an empty folder is a new one.
  await server.stop();
  rmSync(disk, { recursive: true });
  await server.restart();
  const { id } = await upload(alice.at(server.url), chat.id, "a.txt", "zeppelin");
  await server.stop();
  renameSync(disk, `${disk}-elsewhere`);
  mkdirSync(disk);
  const refusal = await server.restart().then(
    () => "none",
    (error) => String(error),
  );
  expect(refusal).toContain(`PARLEY_FILES names ${disk}, which is empty`);
  expect(readdirSync(disk)).toEqual([]);
  rmSync(disk, { recursive: true });
  renameSync(`${disk}-elsewhere`, disk);
  // Some tools copy no empty folders.
  rmSync(join(disk, "incoming"), { recursive: true });
  await server.restart();
  const { url } = await linkOf(alice.at(server.url), id);
  expect(await (await fetch(url)).text()).toBe("zeppelin");
  rmSync(parent, { recursive: true });
});

test("the start prints a command to sign up, with the invite code if one is needed", async () => {
  for (const PARLEY_SIGNUP of ["open", "invite"]) {
    await using server = await startServer({ PARLEY_SIGNUP });
    const [, account = "{}"] = await server.printed(/api\/signUp .* -d '(.*)'/);
    const { status } = await post(server.url, "signUp", JSON.parse(account));
    expect(status).toBe(200);
  }
});

test("the start prints no such command while sign-up is closed", async () => {
  await using server = await startServer({ PARLEY_SIGNUP: "closed" });
  await server.printed(/\/docs/);
  await server.stop();
  expect(server.output()).not.toContain("signUp");
});

test("the server starts from its sources and builds the web client from them", async () => {
  await using server = await startServer({}, SOURCES);
  const page = await (await fetch(`${server.url}/`)).text();
  const assets = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
  expect(assets.length).toBeGreaterThan(2);
  for (const path of assets) {
    const asset = await fetch(`${server.url}${path}`);
    expect({ path, status: asset.status }).toEqual({ path, status: 200 });
    expect((await asset.text()).length).toBeGreaterThan(0);
  }
});

test("the server that runs from its sources has agents that answer, and finds their answers", async () => {
  await using server = await startServer({}, SOURCES);
  const alice = await signUp(server.url, "alice");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
  await using socket = await alice.connect();
  const answer = await answerTo(socket, await say(alice, chat, "Hello!"));
  const { items } = await search(alice, { query: "sandbox" });
  expect(items.map(({ message }) => message.id)).toEqual([answer.id]);
  expect(await server.stop()).toBe(0);
});

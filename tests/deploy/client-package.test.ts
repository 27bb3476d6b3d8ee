import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer, type TestServer } from "@parley/testkit/server.ts";
import { tool, toolsFolder } from "@parley/testkit/tools.ts";
import { quickStart } from "../../packages/client/test/support/quick-start.ts";

const ROOT = join(import.meta.dir, "../..");

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

/** Runs a program and returns what it prints. */
async function run(command: string[], cwd: string): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "pipe" });
  const [printed, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${printed}${errors}`);
  return printed;
}

const WEB_SOCKET = ["ws@8.22.2", "@types/ws@8.18.2"];
const node = Bun.which("node");

describe("packed and installed in an empty project, the SDK", () => {
  const project = mkdtempSync(join(tmpdir(), "parley-project-"));
  afterAll(() => rmSync(project, { recursive: true }));
  const runHere = (...command: string[]) => run(command, project);
  let archive: string;

  beforeAll(async () => {
    const out = join(project, "dist");
    await runHere(process.execPath, join(ROOT, "scripts/build-packages.ts"), out, "client");
    const archives = [...new Bun.Glob("*.tgz").scanSync({ cwd: out, absolute: true })];
    expect(archives).toHaveLength(1);
    archive = archives[0] ?? "";
    await Bun.write(join(project, "package.json"), JSON.stringify({ type: "module" }));
    await runHere("npm", "install", "--no-audit", "--no-fund", archive, ...WEB_SOCKET);
  });

  test("has no dependencies, and no links that lead out of the package", async () => {
    const installed = join(project, "node_modules/@parley/client");
    const { dependencies = {} } = await Bun.file(join(installed, "package.json")).json();
    expect(dependencies).toEqual({});
    expect(existsSync(join(project, "node_modules/zod"))).toBe(false);
    const readme = await Bun.file(join(installed, "README.md")).text();
    expect(readme.match(/\]\((?!https?:|#)[^)]*\)/g)).toBeNull();
    expect(readme).toContain("see Writing a client.");
  });

  test.skipIf(node === null)("runs the quick start of the README under Node", async () => {
    await Bun.write(join(project, "hello.mjs"), await quickStart(server.url));
    expect(await runHere(node ?? "", "hello.mjs")).toContain("You said:\n\n> Hello!");
  });

  test.skipIf(node === null)("calls over HTTP where there is no WebSocket", async () => {
    const script = nodeScript(server.url);
    const output = JSON.parse(await runHere(node ?? "", "--input-type=module", "-e", script));
    expect(output.sent).toEqual(["hello from Node"]);
    expect(output.file).toEqual({ name: "a.txt", size: 6, type: "text/plain" });
    expect(output.connecting).toMatch(/^(online|There is no WebSocket here.*)$/);
  });

  test.each([
    ["preserve", "bundler"],
    ["nodenext", "nodenext"],
  ])("has types for the module system %s", async (module, moduleResolution) => {
    const options = { strict: true, noEmit: true, target: "es2022", module, moduleResolution };
    const compilerOptions = { ...options, lib: ["esnext", "dom"], types: ["node"] };
    const config = { compilerOptions, files: ["index.ts", "hello.ts"] };
    await Bun.write(join(project, "index.ts"), typedScript);
    await Bun.write(join(project, "hello.ts"), await quickStart(server.url));
    await Bun.write(join(project, "tsconfig.json"), JSON.stringify(config));
    await runHere(join(ROOT, "node_modules/.bin/tsc"), "-p", project);
  });

  test("passes publint and Are The Types Wrong", async () => {
    expect(await runHere(tool("publint"), "--strict", archive)).toContain("All good");
    await runHere(tool("attw"), archive, "--profile", "esm-only");
  });

  test("renders with React 18", async () => {
    for (const name of ["react", "react-dom", "scheduler", "loose-envify", "js-tokens"]) {
      symlinkSync(join(toolsFolder(), name), join(project, "node_modules", name));
    }
    const script = reactScript(server.url);
    const rendered = await runHere(node ?? process.execPath, "--input-type=module", "-e", script);
    expect(rendered.trim()).toBe("18: offline");
  });
});

/** Wrong use must be an error: if every type were `any`, the correct use would compile too. */
const typedScript = `
  import { type Account, createClient, type ErrorCode, isCallError, type Message } from "@parley/client";
  import { WebSocket as Ws } from "ws";

  const url = "http://localhost:8080";
  const client = createClient({ url, WebSocket: Ws });
  createClient({ url, WebSocket: globalThis.WebSocket });
  export const sent: Promise<Message> = client.sendMessage({ chat_id: "a", content: "b" });
  export const me: Account | null = client.model.get("me");
  client.on("events.messageNew", ({ params }) => params.content.trim());
  client.eachMessage(({ content }) => void content.trim());
  // @ts-expect-error
  client.sendMessage({ chat_id: 1 });
  export function codeOf(error: unknown): ErrorCode | null {
    // @ts-expect-error: there is no such code
    if (isCallError(error) && error.code === "no_such_code") return null;
    return isCallError(error) ? error.code : null;
  }
`;

const reactScript = (url: string) => `
  import { createClient } from "@parley/client";
  import { ParleyProvider, useStatus } from "@parley/client/react";
  import { createElement, version } from "react";
  import { renderToStaticMarkup } from "react-dom/server";

  const client = createClient({ url: ${JSON.stringify(url)}, token: "any" });
  const Status = () => version.split(".")[0] + ": " + useStatus();
  console.log(renderToStaticMarkup(createElement(ParleyProvider, { client }, createElement(Status))));
`;

const nodeScript = (url: string) => `
  import { createClient } from "@parley/client";

  const url = ${JSON.stringify(url)};
  const username = "node_" + Date.now().toString(36);
  const { access_token } = await createClient({ url }).signUp({
    username,
    password: "correct horse battery",
  });
  const client = createClient({ url, token: access_token });
  const { id } = await client.startChat({ usernames: [], title: "Notes" });
  const isLeft = new Promise((resolve) => {
    client.model.watch("messages:" + id, () => {
      if (client.model.get("messages:" + id).items.length === 0) resolve();
    });
  });
  client.model.send(id, "hello from Node");
  await isLeft;
  const { name, size, type } = await client.upload(id, new File(["a file"], "a.txt"));
  const { items } = await client.getChatHistory({ chat_id: id });
  const connecting = await client.connect().then(() => client.status, (error) => error.message);
  client.close();
  const file = { name, size, type };
  console.log(JSON.stringify({ sent: items.map(({ content }) => content), file, connecting }));
`;

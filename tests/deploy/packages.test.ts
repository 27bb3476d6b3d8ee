import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { search, signUp } from "@parley/testkit/client.ts";
import { startServer } from "@parley/testkit/server.ts";
import { tool } from "@parley/testkit/tools.ts";
import manifest from "../../packages/server/package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");
const { version } = manifest;
const folder = mkdtempSync(join(tmpdir(), "parley-packages-"));
const archive = (name: string) => join(folder, "dist", `parley-${name}-${version}.tgz`);
const archives = ["protocol", "client", "server"].map(archive);

beforeAll(async () => {
  await run([process.execPath, join(ROOT, "scripts/build-packages.ts"), join(folder, "dist")]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program to its end and returns what it prints. */
async function run(command: string[], cwd = folder, env = process.env): Promise<string> {
  const child = Bun.spawn(command, { cwd, env, stdout: "pipe", stderr: "pipe" });
  const [printed, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}: ${printed}${errors}`);
  return printed;
}

function emptyProject(name: string): string {
  const project = join(folder, name);
  mkdirSync(project);
  return project;
}

test("there is one tarball per package", () => {
  const names = readdirSync(join(folder, "dist")).map((name) => join(folder, "dist", name));
  expect(names.toSorted()).toEqual(archives.toSorted());
});

// client-package.test.ts checks the package of the client in the same way.
test.each(["protocol", "server"])("%s passes publint", async (name) => {
  expect(await run([tool("publint"), "--strict", archive(name)])).toContain("All good");
});

test("the types of protocol pass Are The Types Wrong", async () => {
  await run([tool("attw"), archive("protocol"), "--profile", "esm-only"]);
});

const SCRIPT = `
  import { createClient } from "@parley/client";
  import { operations } from "@parley/protocol";
  import { parseMarkup } from "@parley/protocol/markup";
  const { content } = operations.sendMessage.input.parse({
    chat_id: "00000000-0000-7000-8000-000000000000",
    content: "Hello",
  });
  console.log(typeof createClient, parseMarkup(content).length);
`;

/** Wrong use must be an error: if every type were any, the correct use would compile too. */
const TYPED = `
  import { operations, type Message } from "@parley/protocol";
  import { parseMarkup } from "@parley/protocol/markup";
  export const parse = (input: unknown): Message => operations.sendMessage.output.parse(input);
  // @ts-expect-error
  operations.noSuchOperation;
  // @ts-expect-error
  parseMarkup(1);
`;

describe("in an empty project, with Node and npm", () => {
  let project: string;
  let program: string;
  beforeAll(async () => {
    project = emptyProject("node");
    await Bun.write(join(project, "package.json"), JSON.stringify({ type: "module" }));
    // The program must find its runtime where install scripts are not allowed, too.
    const options = ["--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"];
    await run(["npm", "install", ...options, ...archives], project);
    program = join(project, "node_modules/.bin/parley");
  });

  test("the server has no dependency but its runtime", () => {
    const installed = readdirSync(join(project, "node_modules")).filter((name) => name[0] !== ".");
    expect(installed.toSorted()).toEqual(["@oven", "@parley", "bun", "zod"]);
  });

  test("protocol and client can be imported", async () => {
    await Bun.write(join(project, "script.js"), SCRIPT);
    expect(await run(["node", "script.js"], project)).toBe("function 1\n");
  });

  test.each([
    ["preserve", "bundler"],
    ["nodenext", "nodenext"],
  ])("protocol has types for the module system %s", async (module, moduleResolution) => {
    const options = { strict: true, noEmit: true, target: "es2022", module, moduleResolution };
    const compilerOptions = { ...options, lib: ["esnext", "dom"], types: [] };
    await Bun.write(join(project, "typed.ts"), TYPED);
    const config = { compilerOptions, files: ["typed.ts"] };
    await Bun.write(join(project, "tsconfig.json"), JSON.stringify(config));
    await run([join(ROOT, "node_modules/.bin/tsc"), "-p", project], project);
  });

  test("the server starts, serves the web client, searches, and stops", async () => {
    await using server = await startServer({}, [program, "start"]);
    // Ends the runtime too, whatever fails: only this signal is passed on to it.
    await using _ = { [Symbol.asyncDispose]: async () => void (await server.stop()) };
    const page = await (await fetch(`${server.url}/`)).text();
    const assets = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path);
    expect(assets.length).toBeGreaterThan(2);
    for (const path of assets) {
      const asset = await fetch(`${server.url}${path}`, { headers: { "accept-encoding": "br" } });
      expect({ path, status: asset.status }).toEqual({ path, status: 200 });
      expect((await asset.text()).length).toBeGreaterThan(0);
    }
    expect(await (await fetch(`${server.url}/docs`)).text()).toContain("sendMessage");
    const alice = await signUp(server.url, "alice");
    const chat = await alice.call("startChat", { usernames: [], kind: "group" });
    const sent = await alice.call("sendMessage", { chat_id: chat.id, content: "a needle" });
    const { items } = await search(alice, { query: "needle" });
    expect(items.map(({ message }) => message.id)).toEqual([sent.id]);
    const backup = join(project, "backup.tar");
    await run([program, "backup", backup], project, {
      ...process.env,
      PARLEY_DATA: server.dataDir,
    });
    expect(existsSync(backup)).toBe(true);
    expect(await server.stop()).toBe(0);
  });

  test("the exit code of the program is passed on", async () => {
    const child = Bun.spawn([program, "nonsense"], { stderr: "pipe" });
    expect(await child.exited).toBe(2);
    expect(await new Response(child.stderr).text()).toContain('Unknown command "nonsense"');
  });

  test("the licences of what the server contains are included", () => {
    const text = readFileSync(
      join(project, "node_modules/@parley/server/THIRD-PARTY-LICENSES.txt"),
      "utf8",
    );
    for (const name of ["pino", "zod", "react-dom", "@nats-io/transport-node"]) {
      expect(text).toContain(`\n${name} `);
    }
    expect(text).not.toContain("(unknown)");
  });
});

test("npx runs the server from its tarball", async () => {
  const command = ["npx", "--yes", "--prefer-offline", `file:${archive("server")}`, "--version"];
  const project = emptyProject("npx");
  expect(await run(command, project)).toBe(`parley ${version}\n`);
  expect(readdirSync(project)).toEqual([]);
});

test("the packages work in an empty project with Bun alone", async () => {
  const project = emptyProject("bun");
  await Bun.write(join(project, "package.json"), JSON.stringify({ type: "module" }));
  await run([process.execPath, "add", ...archives], project);
  await Bun.write(join(project, "script.js"), SCRIPT);
  expect(await run([process.execPath, "script.js"], project)).toBe("function 1\n");
  const parley = [process.execPath, "run", "--bun", "parley", "--version"];
  const { PATH: _, ...env } = process.env;
  expect(await run(parley, project, env)).toBe(`parley ${version}\n`);
});

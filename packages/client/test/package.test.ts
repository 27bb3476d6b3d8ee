import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServer, type TestServer } from "../../../tests/support/server.ts";

const HERE = join(import.meta.dir, "..");
const ROOT = join(HERE, "../..");

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server[Symbol.asyncDispose]());

async function bundle(entry: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [join(HERE, entry)],
    target: "browser",
    minify: true,
  });
  return outputs[0]?.text() ?? "";
}

/** Runs a program to its end, and returns what it printed. */
async function run(command: string[], cwd = HERE): Promise<string> {
  const child = Bun.spawn(command, { cwd, stdout: "pipe", stderr: "pipe" });
  const [printed, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${printed}${errors}`);
  return printed;
}

describe("the package", () => {
  test("is as small as the README says", async () => {
    const [, stated] =
      /less than (\d+) kB gzipped/.exec(await Bun.file(join(HERE, "README.md")).text()) ?? [];
    const size = Bun.gzipSync(await bundle("src/index.ts")).length;
    expect(size).toBeLessThan(Number(stated) * 1000);
  });

  test("brings along nothing but itself", async () => {
    const code = await bundle("src/index.ts");
    expect(code).not.toMatch(/\bimport\s*[{"'*(]|\brequire\(|ZodError/);
  });

  test("has a quick start that runs as it stands", async () => {
    const readme = await Bun.file(join(HERE, "README.md")).text();
    const [, quickStart = ""] = /^```ts\n(.*?)^```$/ms.exec(readme) ?? [];
    const here = quickStart.replace("http://localhost:8080", server.url);
    expect(here).not.toBe(quickStart);
    expect(await run([process.execPath, "-e", here])).toContain("You said:\n\n> Hello!");
  });
});

describe("packed for another project, it", () => {
  const project = mkdtempSync(join(tmpdir(), "parley-project-"));
  afterAll(() => rmSync(project, { recursive: true }));
  const runHere = (...command: string[]) => run(command, project);

  beforeAll(async () => {
    await runHere(process.execPath, join(ROOT, "scripts/build-sdk.ts"), project);
    for (const archive of new Bun.Glob("*.tgz").scanSync(project)) {
      const folder = join(
        project,
        "node_modules",
        archive.replace(/^(parley)-([a-z]+).*/, "@$1/$2"),
      );
      mkdirSync(folder, { recursive: true });
      await runHere("tar", "xf", archive, "--strip-components=1", "-C", folder);
    }
    symlinkSync(join(ROOT, "node_modules/zod"), join(project, "node_modules/zod"));
  });

  const node = Bun.which("node");
  test.skipIf(node === null)(
    "runs under Node, over HTTP where there is no WebSocket",
    async () => {
      const script = nodeScript(server.url);
      const told = JSON.parse(await runHere(node ?? "", "--input-type=module", "-e", script));
      expect(told.sent).toEqual(["hello from Node"]);
      expect(told.connecting).toMatch(/^(online|There is no WebSocket here.*)$/);
    },
    30_000,
  );

  test.each([
    ["preserve", "bundler"],
    ["nodenext", "nodenext"],
  ])(
    "has types for the module system %s",
    async (module, moduleResolution) => {
      const options = { strict: true, noEmit: true, target: "es2022", module, moduleResolution };
      const compilerOptions = { ...options, lib: ["esnext", "dom"], types: [] };
      const config = { compilerOptions, files: ["index.ts"] };
      await Bun.write(join(project, "package.json"), JSON.stringify({ type: "module" }));
      await Bun.write(join(project, "index.ts"), typedScript);
      await Bun.write(join(project, "tsconfig.json"), JSON.stringify(config));
      await runHere(join(ROOT, "node_modules/.bin/tsc"), "-p", project);
    },
    30_000,
  );
});

/** Wrong use must be an error: otherwise everything is `any`, and nothing is checked. */
const typedScript = `
  import { createClient } from "@parley/client";
  import type { Message } from "@parley/protocol";

  const client = createClient({ url: "http://localhost:8080" });
  export const sent: Promise<Message> = client.sendMessage({ chat_id: "a", content: "b" });
  client.on("events.messageNew", ({ params }) => params.content.trim());
  // @ts-expect-error
  client.sendMessage({ chat_id: 1 });
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
  const { items } = await client.getChatHistory({ chat_id: id });
  const connecting = await client.connect().then(() => client.status, (error) => error.message);
  client.close();
  console.log(JSON.stringify({ sent: items.map(({ content }) => content), connecting }));
`;

import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { groupOf, people } from "@parley/testkit/client.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { startServer } from "@parley/testkit/server.ts";
import { commands } from "../packages/server/src/commands/index.ts";
import { readConfig } from "../packages/server/src/config/config.ts";
import { newSecret, signedHeaders } from "../packages/server/src/outbound/standard-webhooks.ts";
import { DEFAULT_LIMITS } from "../packages/server/src/rules/budget.ts";

// Also without the runner, whose timeout it is: some tests run dozens of commands.
setDefaultTimeout(300_000);

const ROOT = join(import.meta.dir, "..");
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const pages = ["*.md", "docs/**/*.md", "packages/*/*.md", "examples/*/*.md"].flatMap((glob) => [
  ...new Bun.Glob(glob).scanSync(ROOT),
]);
const operating = pages
  .filter((page) => page.startsWith("docs/operating/"))
  .map(read)
  .join("\n");

/** The fenced code blocks in one language, in order. */
const examples = (page: string, language: string) =>
  [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
    .filter(([, tagged]) => tagged === language)
    .map(([, , text]) => text ?? "");

const withoutExamples = (page: string) => page.replace(/^```.*?^```$/gms, "");

/** The anchors of all headings. */
const anchors = (page: string) =>
  [...withoutExamples(page).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );

const unique = (names: Iterable<string>) => [...new Set(names)].sort();

test.each(pages)("every link of %s has an existing target", (page) => {
  const links = [...withoutExamples(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ([, link = ""]) => link,
  );
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [path = "", anchor] = link.split("#");
    const target = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, target))) return true;
    return anchor !== undefined && !anchors(read(target)).includes(anchor);
  });
  expect(broken).toEqual([]);
});

test("every page of docs that a source or a deployment file names exists", () => {
  const globs = [
    "packages/*/{src,test}/**/*.{ts,tsx}",
    "{tests,bench,scripts,deploy,examples}/**/*",
  ];
  const sources = globs.flatMap((glob) => [
    ...new Bun.Glob(glob).scanSync({ cwd: ROOT, dot: true }),
  ]);
  const named = sources
    .filter((file) => !file.includes("/node_modules/"))
    .flatMap((file) => read(file).match(/\bdocs\/[\w/-]+\.md\b/g) ?? []);
  expect(named).toContain("docs/operating/settings.md");
  expect(unique(named).filter((page) => !existsSync(join(ROOT, page)))).toEqual([]);
});

test.each(["docs/operating", "docs/architecture"])(
  "the first page of %s leads to all",
  (folder) => {
    const others = pages.filter((page) => dirname(page) === folder && !page.endsWith("/README.md"));
    const first = read(`${folder}/README.md`);
    expect(others.filter((page) => !first.includes(`](${basename(page)})`))).toEqual([]);
  },
);

test("the example shop has the policy that docs/backend.md offers to copy", () => {
  const [, policy = ""] = /^PARLEY_POLICY='(.*)'$/m.exec(read("docs/backend.md")) ?? [];
  expect(JSON.parse(policy)).toEqual(JSON.parse(read("examples/shop/policy.json")));
});

test("every line that the server logs as a warning or an error is documented", () => {
  const sources = [...new Bun.Glob("packages/server/src/**/*.ts").scanSync(ROOT)];
  const lines = sources
    .filter((file) => !file.includes("/commands/"))
    .flatMap((file) => [...read(file).matchAll(/\blog\.(?:warn|error)\((?:[^"`;]|"")*?"([^"]+)"/g)])
    .map(([, line = ""]) => line);
  expect(lines).toContain("request failed");
  const families = /^(turn|NATS|OIDC) /;
  const undocumented = lines.filter(
    (line) => !families.test(line) && !operating.includes(`\`${line}\``),
  );
  expect(unique(undocumented)).toEqual([]);
});

test("every setting is documented, and no other", () => {
  const names = /\b(PORT|HOST|DATABASE_URL|NATS_[A-Z]+|PARLEY_[A-Z_]+)\b/g;
  const settings = (text: string) => unique(text.match(names) ?? []);
  const sources = [...new Bun.Glob("packages/server/src/config/*.ts").scanSync(ROOT)];
  const known = settings(sources.map(read).join("\n"));
  expect(settings(read("README.md") + operating)).toEqual(known);
});

/** Names and defaults from the table under a heading. */
function documentedDefaults(heading: string): Record<string, unknown> {
  const [, section = ""] = operating.split(new RegExp(`^#+ ${heading}\n`, "m"));
  const [table = ""] = section.split(/^#/m);
  const rows = [...table.matchAll(/^\| `(\w+)` +\| `?([^|`]+?)`? +\|/gm)];
  return Object.fromEntries(
    rows.map(([, name, value = ""]) => {
      const figure = value.replaceAll(",", "");
      return [name, value === "null" ? null : /^\d+$/.test(figure) ? Number(figure) : value];
    }),
  );
}

test("every limit is documented with its default, and no other", () => {
  expect(documentedDefaults("Limits")).toEqual({ ...readConfig({}).limits });
  expect(documentedDefaults("Limits of agents")).toEqual({ ...DEFAULT_LIMITS });
});

test("every metric is documented, and no other", async () => {
  await using server = await startServer();
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const names = [...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name = ""]) => name);
  const documented = [...operating.matchAll(/^\| `((?:parley|process)_\w+)`/gm)];
  expect(unique(documented.map(([, name = ""]) => name))).toEqual(unique(names));
});

test("every command is documented, and no other", () => {
  const documented = [...operating.matchAll(/^\| `parley ([a-z -]*[a-z])[^`]*`/gm)];
  expect(unique(documented.map(([, name = ""]) => name))).toEqual(
    unique(commands.map(({ names: [name] }) => name)),
  );
});

test("the commands of «Running it for a team» run in order", async () => {
  await using provider = Bun.serve({ port: 0, fetch: () => new Response() });
  const settings = providersAt(provider.url.origin);
  await using server = await startServer(settings);
  const folder = mkdtempSync(join(tmpdir(), "parley-team-"));
  const program = join(folder, "parley");
  const main = join(ROOT, "packages/server/src/main.ts");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${main}" "$@"\n`, { mode: 0o755 });
  mkdirSync(join(folder, "backups"));
  const script = examples(read("docs/team.md"), "bash")
    .join("\n")
    .replaceAll("/var/backups/parley", join(folder, "backups"))
    .replaceAll("/var/lib/parley", server.dataDir)
    .replaceAll("/tmp/parley-drill", join(folder, "drill"))
    .replaceAll("unset PARLEY_DATA", `export PARLEY_DATA=${server.dataDir}`);
  const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    env: {
      ...settings,
      PATH: `${folder}:${process.env.PATH}`,
      PARLEY_DATA: server.dataDir,
      PORT: new URL(server.url).port,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
  const code = await shell.exited;
  rmSync(folder, { recursive: true });
  expect({ code, output, errors }).toMatchObject({ code: 0 });
  expect(output).not.toMatch(/^failed/m);
  expect(output.match(/grace/g)?.length).toBeGreaterThan(4);
});

const tools = ["bash", "curl", "node", "npx"].every((tool) => Bun.which(tool) !== null);

/** Runs the tour of the README. Returns what it prints, and the JSON objects in that. */
async function takeTour(url: string) {
  const script = examples(read("README.md"), "bash").join("echo\n");
  expect(script).toContain("http://127.0.0.1:8080");
  const shell = Bun.spawn(
    ["bash", "-euo", "pipefail", "-c", script.replaceAll("http://127.0.0.1:8080", url)],
    {
      cwd: ROOT,
      env: { ...process.env, no_proxy: "127.0.0.1" },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    },
  );
  const [output, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
  expect({ code: await shell.exited, errors }).toMatchObject({ code: 0 });
  const answers = output.split("\n").filter((line) => line.startsWith("{"));
  const frames = answers.map((line) => JSON.parse(line));
  expect(frames.filter(({ ok }) => ok === false)).toEqual([]);
  return { output, frames };
}

test.skipIf(!tools)("the tour in the README runs without changes, and again", async () => {
  await using server = await startServer();
  const { output, frames } = await takeTour(server.url);
  const [sent, history, hello, event, reply, updates, key] = frames;
  expect(frames).toHaveLength(7);
  expect(history.result.items).toEqual([sent.result]);
  expect(hello.method).toBe("events.hello");
  expect(event).toMatchObject({ params: reply.result, at: { seq: 2 } });
  expect(updates.result.messages).toEqual([reply.result]);
  expect(key.result.provider).toBe("claude");
  expect(output).toContain("I am the built-in **sandbox**");
  expect((await takeTour(server.url)).frames).toHaveLength(7);
});

test.skipIf(!tools)("the upload by curl in docs/clients.md runs without changes", async () => {
  await using server = await startServer();
  const [ann] = await people(server.url, "ann");
  const { id: CHAT } = await groupOf(ann);
  const folder = mkdtempSync(join(tmpdir(), "parley-upload-"));
  writeFileSync(join(folder, "plan.txt"), "the plan");
  const [script = ""] = examples(read("docs/clients.md"), "bash");
  const shell = Bun.spawn(["bash", "-euo", "pipefail", "-c", script], {
    cwd: folder,
    env: { ...process.env, SERVER: server.url, TOKEN: ann.token, CHAT, no_proxy: "127.0.0.1" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text()]);
  rmSync(folder, { recursive: true });
  expect({ code: await shell.exited, errors }).toMatchObject({ code: 0 });
  expect(output).toEndWith("the plan");
  const { items } = await ann.call("getChatHistory", { chat_id: CHAT });
  expect(items[0]).toMatchObject({ content: "", files: [{ name: "plan.txt", size: 8 }] });
});

const [python = ""] = examples(read("docs/integrations.md"), "python");

test.skipIf(Bun.which("python3") === null)(
  "the Python code in docs/integrations.md verifies signatures (skipped where there is no python3)",
  async () => {
    const secret = newSecret();
    const body = '{"type":"events.messageNew","data":{"content":"Grüße 🧮"}}';
    const verify = async (message: { at?: number; body?: string; secret?: string }) => {
      const signed = { id: "msg_1", at: message.at ?? Date.now(), body };
      const headers = signedHeaders(signed, message.secret ?? secret);
      const given = JSON.stringify({ secret, headers, body: message.body ?? body });
      const program = `${python}
import json, sys
given = json.load(sys.stdin)
print(verify(given["secret"], given["headers"], given["body"].encode()))`;
      const child = Bun.spawn(["python3", "-c", program], { stdin: Buffer.from(given) });
      return (await child.stdout.text()).trim();
    };
    expect(await verify({})).toBe("True");
    expect(await verify({ body: `${body} ` })).toBe("False");
    expect(await verify({ secret: newSecret() })).toBe("False");
    expect(await verify({ at: Date.now() - 600_000 })).toBe("False");
  },
);

import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { signUp } from "@parley/testkit/client.ts";
import { sharedPostgres } from "@parley/testkit/postgres.ts";
import {
  collect,
  type Environment,
  runMain,
  spawnMain,
  startServer,
} from "@parley/testkit/server.ts";
import manifest from "../package.json" with { type: "json" };
import { commands } from "../src/commands/index.ts";
import { progressOn } from "../src/commands/output.ts";

const run = (line: string, env: Environment = {}) => runMain(line.split(" "), env);

describe("help", () => {
  test("lists every command with its summary", async () => {
    const { code, stdout, stderr } = await run("--help");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Usage: parley");
    for (const { load } of commands) {
      const { name, summary } = await load();
      expect(stdout).toMatch(new RegExp(`^  ${name} +${RegExp.escape(summary)}$`, "m"));
    }
    expect(await run("help")).toEqual({ code, stdout, stderr });
    expect(await run("-h")).toEqual({ code, stdout, stderr });
  });

  test("of one command shows usage, options and examples", async () => {
    const help = await run("help users reset");
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("Usage: parley users reset <username> [options]");
    expect(help.stdout).toContain("--json");
    expect(help.stdout).toContain("parley users reset alice");
    expect(await run("users reset --help")).toEqual(help);
    expect(await run("users reset alice -h")).toEqual(help);
    expect(await run("help password reset")).toEqual(help);
  });

  test("of the first word of several commands lists them", async () => {
    const help = await run("keys --help");
    expect(help.code).toBe(0);
    expect(help.stdout).toContain("keys rotate");
    expect(await run("help keys")).toEqual(help);
  });
});

test("an empty list says so, where a program that reads it finds nothing", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-lists-"));
  const env = { PARLEY_DATA: folder };
  await run("users create ada", env);
  expect(await run("users list --find bob", env)).toEqual({
    code: 0,
    stdout: "",
    stderr: "none\n",
  });
  for (const line of ["operators list", "service-keys list"]) {
    expect(await run(line, env)).toEqual({ code: 0, stdout: "", stderr: "none\n" });
  }
  expect((await run("operators list --json", env)).stderr).toBe("");
  rmSync(folder, { recursive: true });
});

test("every command is listed under its own name, with a summary and an example", async () => {
  for (const { names, load } of commands) {
    const { name, summary, details = "", examples } = await load();
    expect(name).toBe(names[0]);
    expect(summary).toMatch(/^[A-Z].*\.$/);
    expect(Math.max(...details.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(examples.length).toBeGreaterThan(0);
    for (const { line } of examples) {
      const words = line.split(" ").slice(0, name.split(" ").length).join(" ");
      expect([name, ""]).toContain(words);
    }
  }
  const names = commands.flatMap((listed) => listed.names);
  expect(new Set(names).size).toBe(names.length);
});

test("the version is that of the package", async () => {
  const expected = { code: 0, stdout: `parley ${manifest.version}\n`, stderr: "" };
  expect(await run("--version")).toEqual(expected);
  expect(await run("-V")).toEqual(expected);
});

test("commands begin no installation in a folder without a database, but those that create do", async () => {
  const folder = join(mkdtempSync(join(tmpdir(), "parley-commands-")), "data");
  const env = { PARLEY_DATA: folder };
  for (const line of ["users list", "operators list", "service-keys list", "keys rotate"]) {
    const { code, stderr } = await run(line, env);
    expect({ line, code, stderr }).toEqual({
      line,
      code: 1,
      stderr: expect.stringMatching(/^There is no database in /),
    });
    expect(existsSync(folder)).toBe(false);
  }
  expect((await run("users create ada", env)).code).toBe(0);
  expect((await run("users list", env)).stdout).toContain("ada");
  rmSync(join(folder, ".."), { recursive: true });
});

describe("a command line that is not understood", () => {
  const cases: [line: string, message: string, help: string][] = [
    ["sttart", 'Unknown command "sttart". Did you mean "start"?', "parley help"],
    ["nonsense", 'Unknown command "nonsense".', "parley help"],
    ["help nonsense", 'Unknown command "nonsense".', "parley help"],
    ["user list", 'Unknown command "user". Did you mean "users"?', "parley help"],
    ["keys", '"parley keys" needs a command.', "parley help keys"],
    ["keys rotat", 'Unknown command "keys rotat". Did you mean "keys rotate"?', "parley help keys"],
    ["--verbose", "Unknown option --verbose.", "parley help start"],
    ["start --json", "Unknown option --json.", "parley help start"],
    ["users reset", "The argument <username> is missing.", "parley help users reset"],
    ["users reset a b", 'Unexpected argument "b".', "parley help users reset"],
    [
      "keys rotate --jsn",
      'Unknown option --jsn. Did you mean "--json"?',
      "parley help keys rotate",
    ],
    [
      "keys rotate --json=yes",
      "Option '--json' does not take an argument",
      "parley help keys rotate",
    ],
    ["migrate --from sqlite", "Option --to is missing.", "parley help migrate"],
    ["migrate --from sqlite --to", "Option '--to <value>' argument missing", "parley help migrate"],
    [
      "migrate --from sqlite --to mysql",
      'Option --to must be postgres, not "mysql".',
      "parley help migrate",
    ],
  ];
  test.each(cases)("exits with 2 and says what to do: %s", async (line, message, help) => {
    const { code, stdout, stderr } = await run(line);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toStartWith(message);
    expect(stderr).toEndWith(`\nRun "${help}" to see what is possible.\n`);
  });
});

test("a failure exits with 1 and one sentence", async () => {
  const { code, stdout, stderr } = await run("start", { PORT: "nonsense" });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toBe('PORT must be a number from 0 to 65535, not "nonsense".\n');
});

test("a reader of the output that stops early is no failure", async () => {
  const main = join(import.meta.dir, "../src/main.ts");
  const line = `"${process.execPath}" "${main}" --help | true`;
  const { exitCode, stderr } = Bun.spawnSync(["bash", "-o", "pipefail", "-c", line]);
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
});

test("start, serve and no command at all run the server", async () => {
  for (const args of [["start"], ["serve"], []]) {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-test-"));
    const child = spawnMain({ PORT: "0", PARLEY_DATA: dataDir }, args);
    expect(await collect(child).until(/listens on (\S+)/)).toStartWith("http://127.0.0.1:");
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    rmSync(dataDir, { recursive: true });
  }
});

test("the server says how to begin: in a browser, or with a command if people can sign up", async () => {
  for (const policy of ["open", "closed"]) {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-test-"));
    const child = spawnMain({ PORT: "0", PARLEY_DATA: dataDir, PARLEY_SIGNUP: policy }, []);
    const read = collect(child);
    expect(await read.until(/open (\S+) in a browser/)).toStartWith("http://127.0.0.1:");
    expect(read.output().includes("/api/signUp")).toBe(policy === "open");
    child.kill("SIGTERM");
    await child.exited;
    rmSync(dataDir, { recursive: true });
  }
});

test("with --json the result is one object on standard output", async () => {
  await using server = await startServer();
  const { username } = await signUp(server.url);
  const env = { PARLEY_DATA: server.dataDir, PORT: new URL(server.url).port };
  const reset = await run(`users reset ${username} --json`, env);
  expect(reset.stderr).toBe("");
  expect(JSON.parse(reset.stdout)).toEqual({
    username,
    password: expect.any(String),
    sessions_ended: 1,
  });
  expect(JSON.parse((await run("ready --json", env)).stdout)).toEqual({ ready: true });
  expect(await run("ready", env)).toEqual({ code: 0, stdout: "", stderr: "" });
  await server.stop();
  const { code, stderr } = await run("ready", env);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining("No server answers at"),
  });
});

describe("no command prints a log line", () => {
  test("when it succeeds, at any log level", async () => {
    await using postgres = await sharedPostgres();
    const database = await postgres.database();
    await using server = await startServer();
    const { username } = await signUp(server.url);
    const file = join(server.dataDir, "parley.tar");
    const env = {
      PARLEY_DATA: server.dataDir,
      PARLEY_LOG: "trace",
      PARLEY_PROVIDERS: "{}",
      PORT: new URL(server.url).port,
    };
    const lines: [line: string, extra?: Environment][] = [
      ["ready"],
      ["doctor"],
      ["users list"],
      ["users create ada"],
      ["users reset ada"],
      ["users reset ada --second-factor"],
      ["users reset-link ada"],
      [`users sessions ${username} --end`],
      ["users suspend ada"],
      ["users restore ada"],
      [`users export ada ${join(server.dataDir, "ada.zip")}`],
      ["users erase ada --yes"],
      [`operators add ${username}`],
      ["operators list"],
      [`operators remove ${username}`],
      ["service-keys create shop"],
      ["service-keys list"],
      ["service-keys revoke shop"],
      ["keys rotate"],
      [`backup ${file}`],
      [`restore --check ${file}`],
      [`restore ${file}`, { PARLEY_DATA: join(server.dataDir, "restored") }],
      ["migrate --from sqlite --to postgres", { DATABASE_URL: database.url }],
      ["history renew"],
    ];
    for (const [line, extra] of lines) {
      const { code, stdout, stderr } = await run(line, { ...env, ...extra });
      expect({ line, code, stderr }).toMatchObject({ line, code: 0 });
      expect(stdout + stderr).not.toMatch(/^\{/m);
    }
    const tried = lines.map(([line]) => line).join("\n");
    for (const { names } of commands.filter((listed) => !listed.names.includes("start"))) {
      expect(tried).toMatch(new RegExp(`^${names[0]}\\b`, "m"));
    }
  });

  test("when its entry of the audit log cannot be stored, which it says in a sentence", async () => {
    await using server = await startServer();
    const { username } = await signUp(server.url);
    const database = new Database(join(server.dataDir, "parley.db"));
    database.run("PRAGMA busy_timeout = 60000");
    database.run(
      "CREATE TRIGGER refuse BEFORE INSERT ON audit_log BEGIN SELECT RAISE(ABORT, 'refused'); END",
    );
    database.close();
    const file = join(server.dataDir, "export.zip");
    const { code, stdout, stderr } = await run(`users export ${username} ${file}`, {
      PARLEY_DATA: server.dataDir,
    });
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringContaining(`Wrote 0 messages of ${username}`),
      stderr: 'The audit log has no entry "account_exported": it was not stored (refused).\n',
    });
  });
});

describe("progress", () => {
  function show(isTTY: boolean) {
    let time = 0;
    const written: string[] = [];
    const progress = progressOn({ isTTY, write: (text) => written.push(text) }, () => time);
    return {
      written,
      clear: progress.clear,
      at(ms: number, text: string) {
        time = ms;
        progress.show(text);
      },
    };
  }

  test("replaces its line on a terminal, and is removed from it", () => {
    const { at, clear, written } = show(true);
    at(0, "10 %");
    at(10, "11 %");
    at(200, "40 %");
    clear();
    clear();
    expect(written).toEqual(["\r\x1b[K10 %", "\r\x1b[K40 %", "\r\x1b[K"]);
  });

  test("is a line every few seconds elsewhere, and none for short work", () => {
    const { at, clear, written } = show(false);
    at(0, "10 %");
    at(4000, "40 %");
    at(5000, "50 %");
    at(6000, "60 %");
    clear();
    expect(written).toEqual(["50 %\n"]);
  });
});

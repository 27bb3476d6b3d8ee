import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  acceptedContent,
  createMcpHandler,
  inputRequired,
  McpServer,
} from "@modelcontextprotocol/server";
import { freePort } from "@parley/testkit/postgres.ts";
import { tool as toolPath } from "@parley/testkit/tools.ts";
import { until } from "@parley/testkit/until.ts";
import { z } from "zod";
import type { Elicit } from "../src/agents/tools/mcp-client.ts";
import { startToolServers } from "./support/tool-servers.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-tool-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let everything: Bun.Subprocess;
let url = "";
beforeAll(async () => {
  const port = await freePort();
  const command = ["node", toolPath("mcp-server-everything"), "streamableHttp"];
  const env = { PATH: process.env.PATH ?? "", PORT: `${port}` };
  everything = Bun.spawn(command, { env, stdout: "ignore", stderr: "ignore" });
  url = `http://127.0.0.1:${port}/mcp`;
  const isUp = () => fetch(url).then(Boolean, () => false);
  await until(isUp, "server-everything");
});
afterAll(async () => {
  everything.kill();
  await everything.exited;
});

test("the tools of server-everything are listed and called", async () => {
  await using tools = await startToolServers();
  const server = await tools.add(url);
  expect(server).toMatchObject({ status: "ready", error: null });
  expect(server.tools.map(({ name }) => name)).toContain("echo");
  expect(await tools.callTool(server, "echo", { message: "hello" })).toEqual({
    text: "Echo: hello",
    is_error: false,
  });
  const sum = await tools.callTool(server, "get-sum", { a: 2, b: 3 });
  expect(sum.text).toContain("5");
  expect((await tools.callTool(server, "echo", { message: 1 })).is_error).toBe(true);
  const image = await tools.callTool(server, "get-tiny-image");
  expect(image.text).toMatch(/\[image, image\/png, \d+ bytes\]/);
});

test("server-everything reports progress", async () => {
  await using tools = await startToolServers();
  const server = await tools.add(url);
  const reported: string[] = [];
  const onProgress = (text: string) => void reported.push(text);
  const input = { duration: 2, steps: 2 };
  const name = "trigger-long-running-operation";
  expect(await tools.callTool(server, name, input, { onProgress })).toMatchObject({
    is_error: false,
  });
  expect(reported.length).toBeGreaterThan(0);
});

test("server-everything asks a question, and is told the answer", async () => {
  await using tools = await startToolServers();
  const server = await tools.add(url);
  const asked: string[] = [];
  const elicit: Elicit = async ({ message, schema }) => {
    asked.push(message, String(schema.type));
    return { action: "accept", content: { name: "Ada Lovelace" } };
  };
  const name = "trigger-elicitation-request";
  const accepted = await tools.callTool(server, name, {}, { elicit });
  expect(asked).toHaveLength(2);
  expect(accepted.text).toContain("Ada Lovelace");
  expect((await tools.callTool(server, name)).text).toContain("decline");
});

/** A server of the official SDK, which speaks the revision 2026-07-28 without sessions. */
function startModernServer() {
  const handler = createMcpHandler(() => {
    const made = new McpServer({ name: "modern", version: "1" });
    const description = "Greets a person, and asks for the name.";
    made.registerTool("greet", { description, inputSchema: z.object({}) }, (_, context) => {
      const answer = acceptedContent(context.mcpReq.inputResponses, "who");
      if (answer) return { content: [{ type: "text", text: `Hello, ${answer.name}!` }] };
      const requestedSchema = { type: "object", properties: { name: { type: "string" } } } as const;
      const who = inputRequired.elicit({ message: "Who are you?", requestedSchema });
      return inputRequired({ inputRequests: { who } });
    });
    return made;
  });
  const methods: (string | null)[] = [];
  const http = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      methods.push(request.headers.get("mcp-method"));
      return handler.fetch(request);
    },
  });
  const address = `http://127.0.0.1:${http.port}/mcp`;
  return { url: address, methods, [Symbol.asyncDispose]: () => http.stop(true) };
}

test("a server of the latest revision of the protocol is asked, and asks, without a session", async () => {
  await using modern = startModernServer();
  await using tools = await startToolServers();
  const server = await tools.add(modern.url);
  expect(server).toMatchObject({ status: "ready", tools: [{ name: "greet" }] });
  const elicit: Elicit = async () => {
    // The answer that asked has ended long before a person replies.
    await Bun.sleep(300);
    return { action: "accept", content: { name: "Ada" } };
  };
  const result = await tools.callTool(server, "greet", {}, { elicit });
  expect(result).toEqual({ text: "Hello, Ada!", is_error: false });
  expect(modern.methods).toContain("server/discover");
  expect(modern.methods).not.toContain("initialize");
});

/** The operator's server-filesystem, for one folder. */
const filesystem = {
  name: "files",
  command: "node",
  args: [toolPath("mcp-server-filesystem"), folder],
  env: {},
};

test("a program of the operator offers its tools to everybody", async () => {
  await using tools = await startToolServers({ offered: [filesystem] });
  const [server, ...others] = await tools.operators();
  if (!server) throw new Error("there is no server");
  expect(others).toEqual([]);
  expect(server).toMatchObject({ name: "files", url: null, operator: true, status: "ready" });
  expect([...tools.operatorTools().keys()]).toEqual([server.id]);
  await tools.grant(server, "always");
  expect((await tools.offered()).map(({ tool }) => tool)).toContain("write_file");
  const path = join(folder, "notes.txt");
  const written = await tools.callTool(server, "write_file", { path, content: "hello" });
  expect(written.is_error).toBe(false);
  expect(readFileSync(path, "utf8")).toBe("hello");
  expect((await tools.callTool(server, "read_text_file", { path })).text).toBe("hello");
  const outside = await tools.callTool(server, "read_text_file", { path: "/etc/passwd" });
  expect(outside.is_error).toBe(true);
});

test("a program is started again after it ended, and ends with the server", async () => {
  const pidFile = join(folder, "pid");
  const script = join(folder, "server.sh");
  writeFileSync(script, `echo $$ > ${pidFile}; exec "$@"\n`);
  const args = [script, "node", ...filesystem.args];
  const tools = await startToolServers({ offered: [{ ...filesystem, command: "sh", args }] });
  const [server] = await tools.operators();
  if (!server) throw new Error("there is no server");
  const list = () => tools.callTool(server, "list_allowed_directories");
  const pid = () => Number(readFileSync(pidFile, "utf8"));
  expect((await list()).is_error).toBe(false);
  const before = pid();
  process.kill(before, "SIGKILL");
  await until(() => !isRunning(before), "the end of the program");
  await until(async () => !(await list()).is_error, "a new program");
  expect(pid()).not.toBe(before);
  const after = pid();
  await tools[Symbol.asyncDispose]();
  await until(() => !isRunning(after), "the end of the program");
});

test("a program gets none of the settings, and one that does not start is reported", async () => {
  const out = join(folder, "env");
  const printer = { ...filesystem, command: "sh", args: ["-c", `env > ${out}; exit 1`] };
  process.env.PARLEY_SECRET_OF_TEST = "must not be seen";
  await using tools = await startToolServers({
    offered: [
      { ...printer, name: "ends", env: { GIVEN: "yes" } },
      { ...filesystem, name: "missing", command: join(folder, "no-such-program") },
    ],
  });
  const servers = await tools.operators();
  delete process.env.PARLEY_SECRET_OF_TEST;
  expect(servers.map(({ status, tools: none }) => [status, none])).toEqual([
    ["unreachable", []],
    ["unreachable", []],
  ]);
  expect(servers[0]?.error).toBeString();
  expect(existsSync(out)).toBe(true);
  expect(readFileSync(out, "utf8")).toContain("GIVEN=yes");
  expect(readFileSync(out, "utf8")).not.toContain("PARLEY_SECRET_OF_TEST");
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

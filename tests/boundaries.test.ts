import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join } from "node:path";
import { type Operation, operations } from "@parley/protocol";
import type { Resource } from "../packages/server/src/calls/bind.ts";
import type { Needs } from "../packages/server/src/calls/needs.ts";
import { handlers } from "../packages/server/src/operations/index.ts";
import { ignoredErrors } from "./ignored-errors.ts";
import {
  circlesIn,
  emptyCatches,
  type Import,
  importsOf,
  type Parsed,
  parse,
  readsEnvironment,
  readsProperty,
  readsSentences,
} from "./source.ts";

const ROOT = join(import.meta.dir, "..");

interface Source extends Parsed {
  /** The path from the root of the repository. */
  file: string;
  imports: Import[];
}

/** A file and its source, as an example for a rule. */
type Example = [file: string, source: string];

interface Rule {
  name: string;
  applies(file: string): boolean;
  violations(source: Source): string[];
  caught: Example[];
  allowed: Example[];
}

interface ImportRule extends Omit<Rule, "violations"> {
  /** `target` is a path from the root for files of this repository, otherwise the specifier. */
  forbids(target: string, file: string): boolean;
}

const SERVER = "packages/server/src/";
const WEB = "packages/web/src/";
/** The part of a conversation's view that a file belongs to. */
const chatPart = (path: string) =>
  /^packages\/web\/src\/chat\/(timeline|message|composer|details)\//.exec(path)?.[1] ?? null;
const under = (folder: string) => (path: string) => path.startsWith(folder);
const isOurs = under("packages/");
const isRuntime = (target: string) => target === "bun" || isBuiltin(target);
const isTest = (file: string) => /^(tests|bench)\/|^packages\/(\w+\/test|testkit)\//.test(file);
/** Matches every target outside the file's own folder and the allowed ones. */
const anythingBut =
  (...allowed: string[]) =>
  (target: string) =>
    !allowed.some((folder) => target.startsWith(folder));

/** The same for a package: libraries that its manifest names are allowed, modules of a runtime are not. */
const anythingOfOursBut = (name: string, ...allowed: string[]) => {
  const isForeign = anythingBut(`packages/${name}/src/`, ...allowed);
  return (target: string) =>
    isForeign(target) && (isOurs(target) || isRuntime(target) || !librariesOf(name).has(target));
};

/** The libraries that a package's manifest names, with their subpaths. */
function librariesOf(name: string): { has(specifier: string): boolean } {
  const file = join(ROOT, "packages", name, "package.json");
  const manifest = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const named = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  return {
    has: (specifier) => named.some((each) => `${specifier}/`.startsWith(`${each}/`)),
  };
}

const DRIVERS = [`${SERVER}store/sqlite/`, `${SERVER}store/postgres/`];
const isDriver = (target: string) => DRIVERS.some((driver) => target.startsWith(driver));
const isBackend = (target: string) =>
  isDriver(target) ||
  /^packages\/server\/src\/(changes\/bus-\w+|files\/(disk|s3))\.ts$/.test(target);
const isOneOperation = (target: string) =>
  target.startsWith(`${SERVER}operations/`) && basename(target) !== "index.ts";

const importRules: ImportRule[] = [
  {
    name: "protocol → anything of ours, bun:*, node:*",
    applies: under("packages/protocol/src/"),
    forbids: (target) =>
      isRuntime(target) || (isOurs(target) && !target.startsWith("packages/protocol/src/")),
    caught: [
      ["packages/protocol/src/a.ts", 'import { start } from "@parley/server/main";'],
      ["packages/protocol/src/a.ts", 'import { start } from "../../server/src/main.ts";'],
      ["packages/protocol/src/a.ts", 'import type { Database } from "bun:sqlite";'],
      ["packages/protocol/src/a.ts", 'export * from "node:fs";'],
      ["packages/protocol/src/a.ts", 'const { join } = await import("path");'],
      ["packages/protocol/src/a.ts", 'import { serve } from "bun";'],
    ],
    allowed: [
      ["packages/protocol/src/a.ts", 'import { z } from "zod";'],
      ["packages/protocol/src/operations/a.ts", 'import { uuid } from "../text/fields.ts";'],
    ],
  },
  {
    name: "client → anything but protocol",
    applies: under("packages/client/src/"),
    forbids: anythingOfOursBut("client", "packages/protocol/src/"),
    caught: [
      ["packages/client/src/a.ts", 'import type { Store } from "../../server/src/store/store.ts";'],
      ["packages/client/src/a.ts", 'import { createResource } from "@parley/server/calls/bind";'],
      ["packages/client/src/a.ts", 'import "node:events";'],
      ["packages/client/src/a.ts", 'import WebSocket from "ws";'],
    ],
    allowed: [
      ["packages/client/src/a.ts", 'import { operations } from "@parley/protocol";'],
      ["packages/client/src/a.ts", 'import { Client } from "./client.ts";'],
    ],
  },
  {
    name: "web → anything but client and protocol",
    applies: under("packages/web/src/"),
    forbids: anythingOfOursBut("web", "packages/client/src/", "packages/protocol/src/"),
    caught: [
      ["packages/web/src/a.ts", 'import { createResource } from "@parley/server/calls/bind";'],
      ["packages/web/src/a.ts", 'import { file } from "bun";'],
      ["packages/web/src/a.ts", 'import { readFile } from "node:fs/promises";'],
      ["packages/web/src/a.ts", 'import undeclared from "undeclared";'],
    ],
    allowed: [
      ["packages/web/src/a.ts", 'import { connect } from "@parley/client";'],
      ["packages/web/src/a.ts", 'import { parseMarkup } from "@parley/protocol/markup";'],
    ],
  },
  {
    name: "web's lib → anything above it, web's ui → anything but lib",
    applies: (file) => /^packages\/web\/src\/(lib|ui)\//.test(file),
    forbids: (target, file) =>
      target.startsWith(WEB) &&
      anythingBut(`${WEB}lib/`, ...(file.startsWith(`${WEB}ui/`) ? [`${WEB}ui/`] : []))(target),
    caught: [
      [`${WEB}lib/a.ts`, 'import { Toasts } from "../ui/Toasts.tsx";'],
      [`${WEB}lib/a.ts`, 'import type { FileKind } from "../files/describe.ts";'],
      [`${WEB}ui/a.ts`, 'import { useFileLimits } from "../files/limits.ts";'],
      [`${WEB}ui/a.ts`, 'const { App } = await import("../App.tsx");'],
    ],
    allowed: [
      [`${WEB}lib/a.ts`, 'import type { Account } from "@parley/protocol";'],
      [`${WEB}lib/a.ts`, 'import { toast } from "./toasts.ts";'],
      [`${WEB}ui/a.ts`, 'import { toast } from "../lib/toasts.ts";'],
      [`${WEB}ui/a.ts`, 'import { Button } from "./Button.tsx";'],
      [`${WEB}files/a.ts`, 'import { Button } from "../ui/Button.tsx";'],
    ],
  },
  {
    name: "web's chat: timeline → message, and no other part → a part",
    applies: (file) => chatPart(file) !== null,
    forbids: (target, file) => {
      const [from, to] = [chatPart(file), chatPart(target)];
      return to !== null && from !== to && !(from === "timeline" && to === "message");
    },
    caught: [
      [`${WEB}chat/message/a.ts`, 'import { rowsOf } from "../timeline/rows.ts";'],
      [`${WEB}chat/composer/a.ts`, 'import { commandsOf } from "../message/commands.ts";'],
      [`${WEB}chat/timeline/a.ts`, 'import { mentionAt } from "../composer/mention.ts";'],
      [`${WEB}chat/details/a.ts`, 'import { Feed } from "../timeline/Feed.tsx";'],
    ],
    allowed: [
      [`${WEB}chat/timeline/a.ts`, 'import { MessageBody } from "../message/MessageBody.tsx";'],
      [`${WEB}chat/message/a.ts`, 'import { useChatContext } from "../context.ts";'],
      [`${WEB}chat/ChatView.tsx`, 'import { Composer } from "./composer/Composer.tsx";'],
    ],
  },
  {
    name: "rules → anything but protocol",
    applies: under(`${SERVER}rules/`),
    forbids: anythingBut(`${SERVER}rules/`, "packages/protocol/src/"),
    caught: [
      [`${SERVER}rules/a.ts`, 'import type { ReadTx } from "../store/store.ts";'],
      [`${SERVER}rules/a.ts`, 'import type { Change } from "../changes/change.ts";'],
      [`${SERVER}rules/a.ts`, 'import { createHash } from "node:crypto";'],
    ],
    allowed: [
      [`${SERVER}rules/a.ts`, 'import { operations } from "@parley/protocol";'],
      [`${SERVER}rules/a.ts`, 'import { Failure } from "./failure.ts";'],
    ],
  },
  {
    name: "operations → transport, agents, a driver, another operation file",
    applies: (file) => isOneOperation(file),
    forbids: (target) =>
      target.startsWith(`${SERVER}transport/`) ||
      target.startsWith(`${SERVER}agents/`) ||
      target.startsWith(`${SERVER}operations/`) ||
      isDriver(target),
    caught: [
      [`${SERVER}operations/a.ts`, 'import { bearer } from "../transport/http.ts";'],
      [`${SERVER}operations/a.ts`, 'import type { Dispatcher } from "../agents/dispatcher.ts";'],
      [`${SERVER}operations/a.ts`, 'import { migrate } from "../store/sqlite/connection.ts";'],
      [`${SERVER}operations/a.ts`, 'import { open } from "../store/postgres/index.ts";'],
      [`${SERVER}operations/a.ts`, 'import { messages } from "./messages.ts";'],
    ],
    allowed: [
      [`${SERVER}operations/a.ts`, 'import type { ReadTx } from "../store/store.ts";'],
      [`${SERVER}operations/a.ts`, 'import { createResource } from "../calls/bind.ts";'],
      [`${SERVER}operations/index.ts`, 'import { messages } from "./messages.ts";'],
    ],
  },
  {
    name: "realtime → anything but changes, rules and protocol",
    applies: under(`${SERVER}realtime/`),
    forbids: anythingBut(
      ...["realtime", "changes", "rules"].map((folder) => `${SERVER}${folder}/`),
      "packages/protocol/src/",
      "zod",
    ),
    caught: [
      [`${SERVER}realtime/a.ts`, 'import type { AccountRecord } from "../store/store.ts";'],
      [`${SERVER}realtime/a.ts`, 'import type { Limits } from "../config/limits.ts";'],
      [`${SERVER}realtime/a.ts`, 'import { connect } from "@nats-io/transport-node";'],
    ],
    allowed: [
      [`${SERVER}realtime/a.ts`, 'import type { Change } from "../changes/change.ts";'],
      [`${SERVER}realtime/a.ts`, 'import type { AccountRecord } from "../rules/accounts.ts";'],
    ],
  },
  {
    name: "any file but those of transport and compose, and tests → realtime",
    applies: (file) =>
      file.startsWith("packages/") &&
      !/^packages\/server\/src\/(realtime|transport|compose)\b/.test(file) &&
      !isTest(file),
    forbids: (target) => target.startsWith(`${SERVER}realtime/`),
    caught: [
      [`${SERVER}agents/external/a.ts`, 'import type { Hub } from "../../realtime/hub.ts";'],
      [`${SERVER}calls/a.ts`, 'import type { Hub } from "../realtime/hub.ts";'],
      [`${SERVER}store/sqlite/a.ts`, 'import { hub } from "../../realtime/hub.ts";'],
    ],
    allowed: [
      [`${SERVER}agents/external/a.ts`, 'import type { Changes } from "../../changes/stream.ts";'],
      [`${SERVER}transport/socket.ts`, 'import type { Client } from "../realtime/people.ts";'],
      [`${SERVER}compose.ts`, 'import { hub } from "./realtime/hub.ts";'],
    ],
  },
  {
    name: "transport → store, a single operation",
    applies: under(`${SERVER}transport/`),
    forbids: (target) => isOneOperation(target) || target.startsWith(`${SERVER}store/`),
    caught: [
      [`${SERVER}transport/a.ts`, 'import { open } from "../store/sqlite/index.ts";'],
      [`${SERVER}transport/a.ts`, 'import type { Store } from "../store/store.ts";'],
      [`${SERVER}transport/a.ts`, 'type Store = import("../store/store.ts").Store;'],
      [`${SERVER}transport/a.ts`, 'import { messages } from "../operations/messages.ts";'],
    ],
    allowed: [
      [`${SERVER}transport/a.ts`, 'import type { Invoke } from "../calls/invoke.ts";'],
      [`${SERVER}transport/a.ts`, 'import { handlers } from "../operations/index.ts";'],
    ],
  },
  {
    name: "any file but compose/backends.ts, commands and tests → a concrete backend",
    applies: (file) =>
      file !== `${SERVER}compose/backends.ts` &&
      !file.startsWith(`${SERVER}commands/`) &&
      !isTest(file),
    forbids: (target, file) => isBackend(target) && !isOfDriver(file, target),
    caught: [
      [`${SERVER}calls/invoke.ts`, 'import { openSqliteStore } from "../store/sqlite/index.ts";'],
      [
        `${SERVER}calls/invoke.ts`,
        'import type { Connection } from "../store/sqlite/connection.ts";',
      ],
      [`${SERVER}changes/stream.ts`, 'import { memoryBus } from "./bus-memory.ts";'],
      [`${SERVER}agents/a.ts`, 'export { natsBus } from "../changes/bus-nats.ts";'],
      [`${SERVER}files/service.ts`, 'const { openDiskBlobs } = await import("./disk.ts");'],
      [`${SERVER}config/a.ts`, 'import type { S3Options } from "../files/s3.ts";'],
      [`${SERVER}compose.ts`, 'import { memoryBus } from "./changes/bus-memory.ts";'],
      [`${SERVER}store/postgres/index.ts`, 'import { iso } from "../sqlite/connection.ts";'],
      [`${SERVER}store/hot/messages-postgres.ts`, 'import { iso } from "../sqlite/connection.ts";'],
      [`${SERVER}store/messages.ts`, 'import { iso } from "./sqlite/connection.ts";'],
    ],
    allowed: [
      [
        `${SERVER}compose/backends.ts`,
        'import { openSqliteStore } from "../store/sqlite/index.ts";',
      ],
      [
        "bench/seed.ts",
        'import { openSqliteStore } from "../packages/server/src/store/sqlite/index.ts";',
      ],
      [
        "packages/server/test/a.test.ts",
        'import { memoryBus } from "../src/changes/bus-memory.ts";',
      ],
      [`${SERVER}store/sqlite/index.ts`, 'import { connection } from "./connection.ts";'],
      [`${SERVER}store/hot/messages-sqlite.ts`, 'import { compiled } from "../sqlite/dialect.ts";'],
      [`${SERVER}realtime/hub.ts`, 'import type { Bus } from "../changes/bus.ts";'],
    ],
  },
];

/** Whether a file is one of the driver that it imports, or has methods for it in `store/hot/`. */
const isOfDriver = (file: string, target: string) =>
  DRIVERS.some(
    (driver) => target.startsWith(driver) && (file.startsWith(driver) || isHotOf(driver, file)),
  );

const isHotOf = (driver: string, file: string) =>
  file.startsWith(`${SERVER}store/hot/`) && file.endsWith(`-${basename(driver)}.ts`);

const isInPackage = (file: string) => /^packages\/\w+\/src\//.test(file);
const isSource = (file: string) => isInPackage(file) && !isTest(file);

const codeRules: Rule[] = [
  {
    name: "transport uses no store",
    applies: under(`${SERVER}transport/`),
    violations: ({ file, program }) => (readsProperty(program, "store") ? [file] : []),
    caught: [
      [`${SERVER}transport/a.ts`, "await services.store.read((tx) => tx.historyId());"],
      [`${SERVER}transport/a.ts`, 'await services["store"].ready();'],
      [`${SERVER}transport/a.ts`, "const { config, store } = services;"],
      [`${SERVER}transport/a.ts`, "const { services: { store: kept } } = shared;"],
      [`${SERVER}transport/a.ts`, "function sweep({ hub, store }: Services) {}"],
      [`${SERVER}transport/a.ts`, "({ store } = services);"],
    ],
    allowed: [
      [`${SERVER}transport/a.ts`, "await readSyncPoint(services, account);"],
      [`${SERVER}transport/a.ts`, 'const reason = "the store cannot be reached";'],
      [`${SERVER}transport/a.ts`, 'headers.set("cache-control", "no-store");'],
    ],
  },
  {
    name: "config/config.ts alone reads the environment",
    applies: (file) => isSource(file) && file !== `${SERVER}config/config.ts`,
    violations: ({ file, program }) => (readsEnvironment(program) ? [file] : []),
    caught: [
      [`${SERVER}a.ts`, "const home = process.env.HOME;"],
      [`${SERVER}a.ts`, 'const home = process.env["HOME"];'],
      [`${SERVER}a.ts`, 'const home = process["env"].HOME;'],
      [`${SERVER}a.ts`, "const { HOME } = process . env;"],
      [`${SERVER}a.ts`, "const { env } = process;"],
      [`${SERVER}a.ts`, "const home = globalThis.process.env.HOME;"],
      [`${SERVER}a.ts`, 'import { env } from "node:process";'],
      [`${SERVER}a.ts`, "const home = Bun.env.HOME;"],
      [`${SERVER}a.ts`, "const mode = import.meta.env.MODE;"],
    ],
    allowed: [
      [`${SERVER}config/config.ts`, "const home = process.env.HOME;"],
      [`${SERVER}a.ts`, "// process.env is read elsewhere"],
      [`${SERVER}a.ts`, "const env = { PATH: '' }; run({ env });"],
      [`${SERVER}a.ts`, "const { env } = options;"],
      [`${SERVER}a.ts`, 'const text = "process.env";'],
    ],
  },
  {
    name: "no client reads the words of a server's sentence",
    applies: (file) => /^packages\/(client|web)\/src\//.test(file),
    violations: (source) => readsSentences(source).map((line) => `${source.file}:${line}`),
    caught: [
      ["packages/web/src/a.ts", 'if (error.message === "not found: message") drop();'],
      ["packages/web/src/a.ts", "if (error.message !== MESSAGE_NOT_FOUND) fail();"],
      ["packages/web/src/a.ts", "const isInvite = /invite/.test(String(error));"],
      ["packages/web/src/a.ts", 'const [, why] = /: (.+)$/.exec(problem.message ?? "") ?? [];'],
      ["packages/web/src/a.ts", "const [, why] = /^x/.exec(String((error as Error).message));"],
      ["packages/web/src/a.ts", "const limit = turn.error?.message.match(/[0-9]+/);"],
      ["packages/web/src/a.ts", 'if (describeError(refusal).endsWith("rejected")) show();'],
      ["packages/client/src/a.ts", "files.some((file) => error.message.includes(file.id));"],
      ["packages/client/src/a.ts", 'const text = message.failure?.replace("bytes", "B");'],
      ["packages/client/src/a.ts", 'const isGone = failure === "not found: message";'],
    ],
    allowed: [
      ["packages/web/src/a.ts", 'if (error.code === "not_found") drop();'],
      ["packages/web/src/a.ts", "if (error.fields?.invite_code !== undefined) ask();"],
      ["packages/web/src/a.ts", "show(error.message);"],
      ["packages/web/src/a.ts", 'if (message.content.includes("@")) mention();'],
      ["packages/web/src/a.ts", "const isRepeated = turn.error.message === content;"],
      ["packages/web/src/a.ts", 'if (turn.error.parameters.reason === "requests") wait();'],
      [`${SERVER}a.ts`, 'if (error.message.includes("SQLITE_FULL")) stop();'],
    ],
  },
  {
    name: "no catch clause is empty",
    applies: isSource,
    violations: (source) => emptyCatches(source).map((line) => `${source.file}:${line}`),
    caught: [
      [`${SERVER}a.ts`, "try { run(); } catch {}"],
      [`${SERVER}a.ts`, "try { run(); } catch (error) { /* cannot happen */ }"],
      [`${SERVER}a.ts`, "try { run(); } catch {\n  // Nobody needs it.\n} finally { stop(); }"],
    ],
    allowed: [
      [`${SERVER}a.ts`, "try { run(); } catch (error) { log.warn({ err: error }, 'run failed'); }"],
      [`${SERVER}a.ts`, "try { read(); } catch { isMissing = true; }"],
    ],
  },
  {
    name: "no error is ignored without a reason",
    applies: isInPackage,
    violations: (source) => ignoredErrors(source).map((line) => `${source.file}:${line}`),
    caught: [
      [`${SERVER}a.ts`, "stop().catch(() => {});"],
      [`${SERVER}a.ts`, "const body = await response.json().catch(() => null);"],
      [`${SERVER}a.ts`, "read()\n  .catch(function () { return []; });"],
      [`${SERVER}a.ts`, "read()?.catch((_error) => ({ items: [] }));"],
      [`${SERVER}a.ts`, "read().then(show, () => undefined);"],
      [`${SERVER}a.ts`, "read().catch(() => { isMissing = true; });"],
      [`${SERVER}a.ts`, "// Reads it.\nread();\nstop().catch(() => {});"],
      [`${SERVER}a.ts`, "// biome-ignore lint: no reason\nstop().catch(() => {});"],
      [`${SERVER}a.ts`, "function read() { try { return parse(); } catch { return null; } }"],
      [`${SERVER}a.ts`, "try {\n  save();\n  // Saved.\n} catch {\n  remove();\n}"],
      ["packages/testkit/src/a.ts", "stop().catch(() => {});"],
    ],
    allowed: [
      [`${SERVER}a.ts`, "// The next start deletes it.\nstop().catch(() => {});"],
      [`${SERVER}a.ts`, "stop().catch(() => {}); // The next start deletes it."],
      [`${SERVER}a.ts`, "stop().catch(() => {\n  // The next start deletes it.\n});"],
      [`${SERVER}a.ts`, "stop()\n  // The next start deletes it.\n  .catch(() => {});"],
      [
        `${SERVER}a.ts`,
        "/** Null if it is not JSON. */\nconst read = () => json().catch(() => null);",
      ],
      [`${SERVER}a.ts`, "// There may be none.\ntry {\n  save();\n} catch {\n  remove();\n}"],
      [`${SERVER}a.ts`, "stop().catch((error) => log.warn({ err: error }, 'stop failed'));"],
      [`${SERVER}a.ts`, "stop().catch(report);"],
      [`${SERVER}a.ts`, "read().catch(() => showMissing());"],
      [`${SERVER}a.ts`, "const title = z.string().catch(undefined);"],
      [`${SERVER}a.ts`, "try { parse(); } catch { throw new Error('not JSON'); }"],
      [
        `${SERVER}a.ts`,
        "const read = () => { try { return parse(); } catch { return failed('not JSON'); } };",
      ],
      ["packages/server/test/a.test.ts", "stop().catch(() => {});"],
    ],
  },
];

const rules: Rule[] = [...importRules.map(toRule), ...codeRules];

const sources = [...new Bun.Glob("{packages,tests,bench,scripts}/**/*.{ts,tsx}").scanSync(ROOT)]
  .filter((file) => !/node_modules|\/dist\//.test(file))
  .map((file) => sourceOf(file, readFileSync(join(ROOT, file), "utf8")));

describe("the check of source files", () => {
  for (const rule of rules) {
    test(`finds no violation of: ${rule.name}`, () => {
      expect(sources.flatMap((source) => violations(rule, source))).toEqual([]);
    });
    test(`catches the planted violations of: ${rule.name}`, () => {
      for (const [file, text] of rule.caught) {
        const found = violations(rule, sourceOf(file, text));
        expect([text, found]).toEqual([text, [expect.any(String)]]);
      }
    });
    test(`allows what does not violate: ${rule.name}`, () => {
      for (const [file, text] of rule.allowed) {
        expect([text, violations(rule, sourceOf(file, text))]).toEqual([text, []]);
      }
    });
    test(`names only existing files in the examples of: ${rule.name}`, () => {
      const examples = [...rule.caught, ...rule.allowed];
      expect(examples.flatMap(filesOf).filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
    });
    test(`has files to check for: ${rule.name}`, () => {
      expect(sources.some(({ file }) => rule.applies(file))).toBe(true);
    });
  }
});

describe("circles of imports", () => {
  test("do not exist", () => {
    const files = new Set(sources.map(({ file }) => file));
    const graph = new Map(
      sources.map(({ file, imports }) => {
        const modules = imports.filter(({ kind }) => kind === "module");
        const targets = modules.map(({ specifier }) => resolveImport(specifier, file));
        return [file, targets.filter((target) => files.has(target))];
      }),
    );
    expect([...graph.values()].flat().length).toBeGreaterThan(1000);
    expect(circlesIn(graph).map((circle) => circle.join(" → "))).toEqual([]);
  });

  test("are found wherever they begin", () => {
    const graph = (edges: Record<string, string[]>) => new Map(Object.entries(edges));
    expect(circlesIn(graph({ a: ["b", "c"], b: ["c"], c: [] }))).toEqual([]);
    expect(circlesIn(graph({ a: ["a"] }))).toEqual([["a", "a"]]);
    expect(circlesIn(graph({ a: ["b"], b: ["c"], c: ["b"] }))).toEqual([["b", "c", "b"]]);
    expect(circlesIn(graph({ a: [], b: ["c"], c: ["d"], d: ["a", "b"] }))).toEqual([
      ["b", "c", "d", "b"],
    ]);
  });
});

describe("the folders of the server", () => {
  /** `compose.ts` belongs to the folder `compose/`. */
  const folderOf = (file: string) => file.slice(SERVER.length).split(/[./]/, 1)[0] ?? "";
  /** The folders among these files that import each other, directly or through others. */
  function circlesOf(files: readonly Source[]): string[] {
    const graph = new Map(files.map(({ file }) => [folderOf(file), new Set<string>()]));
    for (const { file, imports } of files) {
      const targets = imports.map(({ specifier }) => resolveImport(specifier, file));
      for (const target of targets.filter(under(SERVER))) {
        const folder = folderOf(target);
        if (folder !== folderOf(file)) graph.get(folderOf(file))?.add(folder);
      }
    }
    const lists = new Map([...graph].map(([folder, targets]) => [folder, [...targets]]));
    return circlesIn(lists).map((circle) => circle.join(" → "));
  }
  const circlesOfExamples = (...examples: Example[]) =>
    circlesOf(examples.map(([file, text]) => sourceOf(file, text)));

  test("do not import each other", () => {
    expect(circlesOf(sources.filter(({ file }) => file.startsWith(SERVER)))).toEqual([]);
  });

  test("are caught when they do", () => {
    const store: Example = [`${SERVER}store/a.ts`, 'import type { A } from "../changes/b.ts";'];
    const changes: Example = [`${SERVER}changes/a.ts`, 'import { b } from "../store/b.ts";'];
    const observe: Example = [`${SERVER}observe/a.ts`, 'import { b } from "../store/b.ts";'];
    const log: Example = [`${SERVER}changes/a.ts`, 'import { b } from "../observe/b.ts";'];
    const config: Example = [`${SERVER}config/a.ts`, 'import { b } from "../security/b.ts";'];
    const security: Example = [`${SERVER}security/a.ts`, 'import { b } from "../config/b.ts";'];
    expect(circlesOfExamples(store, changes)).toEqual(["store → changes → store"]);
    expect(circlesOfExamples(store, log, observe)).toEqual(["store → changes → observe → store"]);
    expect(circlesOfExamples(config, security)).toEqual(["config → security → config"]);
  });

  test("may import those below them, and what is in their own", () => {
    const store: Example = [`${SERVER}store/a.ts`, 'import type { A } from "../changes/b.ts";'];
    const inside: Example = [`${SERVER}store/hot/a.ts`, 'import { b } from "../sqlite/b.ts";'];
    const outside: Example = [`${SERVER}changes/a.ts`, 'import { z } from "zod";'];
    expect(circlesOfExamples(store, inside, outside)).toEqual([]);
  });
});

describe("the layout", () => {
  test("the root of the server has only the entry and the composition", () => {
    const loose = [...new Bun.Glob("*").scanSync({ cwd: join(ROOT, SERVER), dot: true })];
    expect(loose.toSorted()).toEqual(["compose.ts", "main.ts"]);
  });
});

describe("importsOf", () => {
  const a: Import = { specifier: "a", kind: "module" };
  const b: Import = { specifier: "b", kind: "module" };
  const forms: [source: string, found: Import[]][] = [
    ['import "a";', [a]],
    ["import 'a'", [a]],
    ['import a from "a";', [a]],
    ['import * as a from "a";', [a]],
    ['import { a,\n  type B,\n} from "a";', [a]],
    ['import type { A } from "a";', [a]],
    ['import type A from "a";', [a]],
    ['import type from "a";', [a]],
    ['import { type A, type B as C } from "a";', [a]],
    ['import a from "a" with { type: "json" };', [a]],
    ['import a = require("a");', [a]],
    ['export * from "a";', [a]],
    ['export * as b from "a";', [a]],
    ['export { b } from "a";', [a]],
    ['export type { B } from "a";', [a]],
    ['export type * from "a";', [a]],
    ['const b = await import("a");', [a]],
    ["const b = await import(`a`);", [a]],
    ['type A = import("a").A;', [a]],
    ['const b = require("a");', [a]],
    ['new Worker(new URL("./a.ts", import.meta.url));', [{ specifier: "./a.ts", kind: "url" }]],
    ['import a from "a";import b from "b";', [a, b]],
    ['// import "a";\n/* import "b"; */', []],
    [`const text = \`\nimport "a";\n\${\`\${1}import "b"\`}\`;`, []],
    ["const text = 'import \"a\"';", []],
    ['const from = "a"; const imported = { from: "b" };', []],
    ['export const name = "from";\nexport default "a";', []],
    ["const name = import.meta.url;", []],
  ];
  for (const [source, found] of forms) {
    test(`reads ${JSON.stringify(source)}`, () =>
      expect(importsOf(parse(source).program)).toEqual(found));
  }
});

describe("one resource, one file name", () => {
  const names = (folder: string) =>
    [...new Bun.Glob("*.ts").scanSync(join(ROOT, folder))]
      .filter((name) => name !== "index.ts")
      .toSorted();
  const resources = names("packages/protocol/src/operations");

  test("contract and handlers have the same files", () => {
    expect(names(`${SERVER}operations`)).toEqual(resources);
  });

  test("every operation of the contract is bound exactly once", () => {
    const bound = handlers({} as Needs)
      .map(({ contract }) => contract.name)
      .toSorted();
    const declared = Object.values<Operation>(operations).map(({ name }) => name);
    expect(bound).toEqual(declared.toSorted());
  });

  test("operations are listed under their own names, and no name is used twice", () => {
    const declared = Object.entries<Operation>(operations);
    for (const [key, { name }] of declared) expect(name).toBe(key);
    const callable = declared.flatMap(([, { name, socket }]) => [name, socket]);
    expect(new Set(callable).size).toBe(callable.length);
  });

  for (const name of resources) {
    test(`the operations declared in protocol's ${name} are bound in the server's ${name}`, async () => {
      const declared = operationsIn(
        await import(join(ROOT, "packages/protocol/src/operations", name)),
      );
      expect(declared.length).toBeGreaterThan(0);
      const file = join(ROOT, SERVER, "operations", name);
      const bound = existsSync(file) ? boundIn(await import(file)) : [];
      expect(bound.toSorted()).toEqual(declared.toSorted());
    });
  }

  test("handlers count against the throttles that the contract leaves to them, and no others", async () => {
    for (const name of resources) {
      const contracts: unknown[] = Object.values(
        await import(join(ROOT, "packages/protocol/src/operations", name)),
      );
      const declared = contracts
        .filter((each): each is Operation => typeof each === "object" && "socket" in (each ?? {}))
        .flatMap(({ throttles }) => throttles.filter(({ of }) => of !== null))
        .map((each) => each.name);
      const text = readFileSync(join(ROOT, SERVER, "operations", name), "utf8");
      const taken = [...text.matchAll(/\b(?:take|checkFailures)\(context, "(\w+)"/g)].map(
        ([, taken]) => taken ?? "",
      );
      if (/\bownAttempt\(|signInThrottle\.attempt\(/.test(text)) taken.push("passwords");
      const sorted = (names: readonly string[]) => [...new Set(names)].toSorted();
      expect([name, sorted(taken)]).toEqual([name, sorted(declared)]);
    }
  });

  type Module = Record<string, unknown>;
  const operationsIn = (module: Module) =>
    Object.values(module)
      .filter((each): each is Operation => typeof each === "object" && "socket" in (each ?? {}))
      .map(({ name }) => name);
  const boundIn = (module: Module) =>
    Object.values(module)
      .filter((each): each is Resource<never> => typeof each === "object" && "bind" in (each ?? {}))
      .flatMap((resource) => resource.bind({}).map(({ contract }) => contract.name));
});

function sourceOf(file: string, text: string): Source {
  const parsed = parse(text, file);
  return { file, ...parsed, imports: importsOf(parsed.program) };
}

function toRule({ forbids, ...rule }: ImportRule): Rule {
  return {
    ...rule,
    violations: ({ file, imports }) =>
      imports
        .map(({ specifier }) => resolveImport(specifier, file))
        .filter((target) => forbids(target, file))
        .map((target) => `${file} → ${target}`),
  };
}

/** The files of this repository that an example names, except `a.ts`, which stands for any file. */
function filesOf([file, text]: Example): string[] {
  const targets = sourceOf(file, text).imports.map(({ specifier }) =>
    resolveImport(specifier, file),
  );
  return [file, ...targets.filter(isOurs)].filter(
    (path) => !/^a\.(test\.)?ts$/.test(basename(path)),
  );
}

const violations = (rule: Rule, source: Source) =>
  rule.applies(source.file) ? rule.violations(source) : [];

/** The path from the root that an import leads to, or the specifier of another package. */
function resolveImport(specifier: string, file: string): string {
  if (specifier.startsWith(".")) return join(dirname(file), specifier);
  const [, name, path = "index"] = /^@parley\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (!name) return specifier;
  const target = `packages/${name}/src/${path.replace(/\.ts$/, "")}`;
  return existsSync(join(ROOT, target, "index.ts")) ? `${target}/index.ts` : `${target}.ts`;
}

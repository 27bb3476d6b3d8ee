import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join } from "node:path";
import { type Operation, operations } from "@parley/protocol";
import type { Bound } from "../packages/server/src/operation.ts";
import { handlers } from "../packages/server/src/operations/index.ts";

const ROOT = join(import.meta.dir, "..");

interface Import {
  specifier: string;
  /** Whether types alone are imported. */
  types: boolean;
}

interface Rule {
  /** As the house rules put it. */
  name: string;
  applies(file: string): boolean;
  /** `target` is a path from the root for our own files, otherwise the specifier. */
  forbids(target: string, file: string, types: boolean): boolean;
  /** Imports that must be caught, and imports that must not. */
  caught: [file: string, source: string][];
  fine: [file: string, source: string][];
}

const SERVER = "packages/server/src/";
const under = (folder: string) => (path: string) => path.startsWith(folder);
const isOurs = under("packages/");
const isRuntime = (target: string) => target === "bun" || isBuiltin(target);
const isTest = (file: string) => /^(tests|bench)\/|^packages\/(\w+\/test|testkit)\//.test(file);
/** Anything outside the folder of the file's own package or layer, and outside those named. */
const anythingBut =
  (own: string, ...allowed: string[]) =>
  (target: string) =>
    ![own, ...allowed].some((folder) => target.startsWith(folder));

/** As above, for a package of its own: libraries pass if its manifest names them, a runtime never. */
const anythingOfOursBut = (name: string, ...allowed: string[]) => {
  const isForeign = anythingBut(`packages/${name}/src/`, ...allowed);
  return (target: string) =>
    isForeign(target) && (isOurs(target) || isRuntime(target) || !librariesOf(name).has(target));
};

/** What a package's manifest says it is built with, and whatever lies inside those. */
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
  isDriver(target) || /^packages\/server\/src\/realtime\/bus-\w+\.ts$/.test(target);
const isOneOperation = (target: string) =>
  target.startsWith(`${SERVER}operations/`) && basename(target) !== "index.ts";

const rules: Rule[] = [
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
    fine: [
      ["packages/protocol/src/a.ts", 'import { z } from "zod";'],
      ["packages/protocol/src/operations/a.ts", 'import { uuid } from "../text.ts";'],
    ],
  },
  {
    name: "client → anything but protocol",
    applies: under("packages/client/src/"),
    forbids: anythingOfOursBut("client", "packages/protocol/src/"),
    caught: [
      ["packages/client/src/a.ts", 'import type { Store } from "../../server/src/store/store.ts";'],
      ["packages/client/src/a.ts", 'import { app } from "@parley/web";'],
      ["packages/client/src/a.ts", 'import "node:events";'],
      ["packages/client/src/a.ts", 'import WebSocket from "ws";'],
    ],
    fine: [
      ["packages/client/src/a.ts", 'import { operations } from "@parley/protocol";'],
      ["packages/client/src/a.ts", 'import { call } from "./call.ts";'],
    ],
  },
  {
    name: "web → anything but client and protocol",
    applies: under("packages/web/src/"),
    forbids: anythingOfOursBut("web", "packages/client/src/", "packages/protocol/src/"),
    caught: [
      ["packages/web/src/a.ts", 'import { bind } from "@parley/server/operation";'],
      ["packages/web/src/a.ts", 'import { file } from "bun";'],
      ["packages/web/src/a.ts", 'import { readFile } from "node:fs/promises";'],
      ["packages/web/src/a.ts", 'import undeclared from "undeclared";'],
    ],
    fine: [
      ["packages/web/src/a.ts", 'import { connect } from "@parley/client";'],
      ["packages/web/src/a.ts", 'import { parseMarkup } from "@parley/protocol/markup";'],
    ],
  },
  {
    name: "rules → anything but protocol",
    applies: under(`${SERVER}rules/`),
    forbids: anythingBut(`${SERVER}rules/`, "packages/protocol/src/"),
    caught: [
      [`${SERVER}rules/a.ts`, 'import type { ReadTx } from "../store/store.ts";'],
      [`${SERVER}rules/a.ts`, 'import { Failure } from "../failure.ts";'],
      [`${SERVER}rules/a.ts`, 'import { createHash } from "node:crypto";'],
    ],
    fine: [
      [`${SERVER}rules/a.ts`, 'import { operations } from "@parley/protocol";'],
      [`${SERVER}rules/a.ts`, 'import { mentioned } from "./mentions.ts";'],
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
    fine: [
      [`${SERVER}operations/a.ts`, 'import type { ReadTx } from "../store/store.ts";'],
      [`${SERVER}operations/a.ts`, 'import { bind } from "../operation.ts";'],
      [`${SERVER}operations/index.ts`, 'import { messages } from "./messages.ts";'],
    ],
  },
  {
    name: "store ↔ realtime",
    applies: (file) => file.startsWith(`${SERVER}store/`) || file.startsWith(`${SERVER}realtime/`),
    forbids: (target, file) =>
      target.startsWith(
        file.startsWith(`${SERVER}store/`) ? `${SERVER}realtime/` : `${SERVER}store/`,
      ),
    caught: [
      [`${SERVER}store/a.ts`, 'import type { Hub } from "../realtime/hub.ts";'],
      [`${SERVER}store/sqlite/a.ts`, 'import { hub } from "../../realtime/hub.ts";'],
      [`${SERVER}realtime/a.ts`, 'import type { AccountRecord } from "../store/store.ts";'],
    ],
    fine: [
      [`${SERVER}store/sqlite/a.ts`, 'import type { Store } from "../store.ts";'],
      [`${SERVER}realtime/a.ts`, 'import type { Announcement } from "../announcement.ts";'],
    ],
  },
  {
    name: "transport → store, a single operation",
    applies: under(`${SERVER}transport/`),
    // The types of the interface pass through transports in the services they hold.
    forbids: (target, _file, types) =>
      isOneOperation(target) ||
      (target.startsWith(`${SERVER}store/`) && !(types && target === `${SERVER}store/store.ts`)),
    caught: [
      [`${SERVER}transport/a.ts`, 'import { open } from "../store/sqlite/index.ts";'],
      [
        `${SERVER}transport/a.ts`,
        'import type { Connection } from "../store/sqlite/connection.ts";',
      ],
      [`${SERVER}transport/a.ts`, 'import { anything } from "../store/store.ts";'],
      [`${SERVER}transport/a.ts`, 'import { messages } from "../operations/messages.ts";'],
    ],
    fine: [
      [`${SERVER}transport/a.ts`, 'import type { Store } from "../store/store.ts";'],
      [`${SERVER}transport/a.ts`, 'import { type Store } from "../store/store.ts";'],
      [`${SERVER}transport/a.ts`, 'import { handlers } from "../operations/index.ts";'],
    ],
  },
  {
    name: "any file but compose.ts, commands and tests → a concrete backend",
    applies: (file) =>
      file !== `${SERVER}compose.ts` && !file.startsWith(`${SERVER}commands/`) && !isTest(file),
    forbids: (target, file) => isBackend(target) && !sameDriver(target, file),
    caught: [
      [`${SERVER}operation.ts`, 'import { openSqliteStore } from "./store/sqlite/index.ts";'],
      [`${SERVER}operation.ts`, 'import type { Connection } from "./store/sqlite/connection.ts";'],
      [`${SERVER}realtime/hub.ts`, 'import { memoryBus } from "./bus-memory.ts";'],
      [`${SERVER}agents/a.ts`, 'export { natsBus } from "../realtime/bus-nats.ts";'],
      [`${SERVER}store/postgres/index.ts`, 'import { iso } from "../sqlite/connection.ts";'],
    ],
    fine: [
      [`${SERVER}compose.ts`, 'import { openSqliteStore } from "./store/sqlite/index.ts";'],
      [
        "bench/seed.ts",
        'import { openSqliteStore } from "../packages/server/src/store/sqlite/index.ts";',
      ],
      [
        "packages/server/test/a.test.ts",
        'import { memoryBus } from "../src/realtime/bus-memory.ts";',
      ],
      [`${SERVER}store/sqlite/index.ts`, 'import { connection } from "./connection.ts";'],
      [`${SERVER}realtime/hub.ts`, 'import type { Bus } from "./bus.ts";'],
    ],
  },
];

const sameDriver = (target: string, file: string) =>
  DRIVERS.some((driver) => target.startsWith(driver) && file.startsWith(driver));

const sources = [...new Bun.Glob("{packages,tests,bench}/**/*.{ts,tsx}").scanSync(ROOT)]
  .filter((file) => !file.includes("node_modules"))
  .map((file) => ({ file, source: readFileSync(join(ROOT, file), "utf8") }));

describe("imports that must not exist", () => {
  for (const rule of rules) {
    test(rule.name, () => {
      expect(sources.flatMap(({ file, source }) => violations(rule, file, source))).toEqual([]);
    });
  }

  test("no rule has lost the files it is for", () => {
    const isThere = (name: string) =>
      sources.some(({ file }) => file.startsWith(`packages/${name}/src/`));
    for (const { name, applies } of rules) {
      const [, comingPackage] = /^(client|web) /.exec(name) ?? [];
      if (comingPackage && !isThere(comingPackage)) continue;
      expect([name, sources.some(({ file }) => applies(file))]).toEqual([name, true]);
    }
  });
});

describe("the environment", () => {
  test("is read by config.ts alone", () => {
    const readers = sources.filter(
      ({ file, source }) =>
        /^packages\/\w+\/src\//.test(file) && !isTest(file) && readsEnvironment(source),
    );
    expect(readers.map(({ file }) => file)).toEqual([`${SERVER}config.ts`]);
  });

  test("is found out whichever way it is read", () => {
    for (const source of [
      "const home = process.env.HOME;",
      'const home = process.env["HOME"];',
      "const { HOME } = process . env;",
      "const { env } = process;",
      'import { env } from "node:process";',
      "const home = Bun.env.HOME;",
      "const mode = import.meta.env.MODE;",
    ]) {
      expect([source, readsEnvironment(source)]).toEqual([source, true]);
    }
    for (const source of [
      "// process.env is read elsewhere",
      "const env = { PATH: '' }; run({ env });",
      'const text = "process.env";',
    ]) {
      expect([source, readsEnvironment(source)]).toEqual([source, false]);
    }
  });
});

describe("the scanner", () => {
  for (const rule of rules) {
    test(`catches what is planted against: ${rule.name}`, () => {
      for (const [file, source] of rule.caught) {
        expect([source, violations(rule, file, source)]).toEqual([source, [expect.any(String)]]);
      }
    });
    test(`lets pass what is allowed by: ${rule.name}`, () => {
      for (const [file, source] of rule.fine) {
        expect([source, violations(rule, file, source)]).toEqual([source, []]);
      }
    });
  }

  const forms: [source: string, found: Import[]][] = [
    ['import "a";', [{ specifier: "a", types: false }]],
    ["import 'a'", [{ specifier: "a", types: false }]],
    ['import a from "a";', [{ specifier: "a", types: false }]],
    ['import * as a from "a";', [{ specifier: "a", types: false }]],
    ['import { a,\n  type B,\n} from "a";', [{ specifier: "a", types: false }]],
    ['import type { A } from "a";', [{ specifier: "a", types: true }]],
    ['import type A from "a";', [{ specifier: "a", types: true }]],
    ['import { type A, type B as C } from "a";', [{ specifier: "a", types: true }]],
    ['import a from "a" with { type: "json" };', [{ specifier: "a", types: false }]],
    ['export * from "a";', [{ specifier: "a", types: false }]],
    ['export * as a from "a";', [{ specifier: "a", types: false }]],
    ['export { a } from "a";', [{ specifier: "a", types: false }]],
    ['export type { A } from "a";', [{ specifier: "a", types: true }]],
    ['const a = await import("a");', [{ specifier: "a", types: false }]],
    ["const a = import(`a`);", [{ specifier: "a", types: false }]],
    ['type A = import("a").A;', [{ specifier: "a", types: false }]],
    ['const a = require("a");', [{ specifier: "a", types: false }]],
    ['new Worker(new URL("./a.ts", import.meta.url));', [{ specifier: "./a.ts", types: false }]],
    [
      'import a from "a";import b from "b";',
      [
        { specifier: "a", types: false },
        { specifier: "b", types: false },
      ],
    ],
    ['// import "a";\n/* import "b"; */', []],
    [`const text = \`\nimport "a";\n\${\`\${1}import "b"\`}\`;`, []],
    ["const text = 'import \"a\"';", []],
    ['const quote = /["\'`]/; import("a");', [{ specifier: "a", types: false }]],
    ['const half = 1 / 2; import "a"; // " /', [{ specifier: "a", types: false }]],
    ['const from = "a"; const imported = { from: "b" };', []],
    ['export const name = "from";\nexport default "a";', []],
    ["const name = import.meta.url;", []],
  ];
  for (const [source, found] of forms) {
    test(`reads ${JSON.stringify(source)}`, () => expect(importsOf(source)).toEqual(found));
  }

  test("finds as many imports as there are in the code of this house", () => {
    const found = sources.flatMap(({ source }) => importsOf(source));
    const lines = sources.flatMap(({ source }) => source.match(/^(import\b|\} from ").*"/gm) ?? []);
    expect(found.length).toBeGreaterThanOrEqual(lines.length);
  });
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
    const bound = handlers.map(({ contract }) => contract.name).toSorted();
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
    test(`what ${name} declares is bound in ${name}`, async () => {
      const declared = operationsIn(
        await import(join(ROOT, "packages/protocol/src/operations", name)),
      );
      expect(declared.length).toBeGreaterThan(0);
      const file = join(ROOT, SERVER, "operations", name);
      const bound = existsSync(file) ? boundIn(await import(file)) : [];
      expect(bound.toSorted()).toEqual(declared.toSorted());
    });
  }

  type Module = Record<string, unknown>;
  const operationsIn = (module: Module) =>
    Object.values(module)
      .filter((each): each is Operation => typeof each === "object" && "socket" in (each ?? {}))
      .map(({ name }) => name);
  const boundIn = (module: Module) =>
    Object.values(module)
      .filter(Array.isArray)
      .flatMap((list: Bound[]) => list.map(({ contract }) => contract.name));
});

function violations(rule: Rule, file: string, source: string): string[] {
  if (!rule.applies(file)) return [];
  return importsOf(source)
    .map(({ specifier, types }) => ({ target: resolveImport(specifier, file), types }))
    .filter(({ target, types }) => rule.forbids(target, file, types))
    .map(({ target }) => `${file} → ${target}`);
}

/** Where an import leads: a path from the root for our own files, otherwise the specifier. */
function resolveImport(specifier: string, file: string): string {
  if (specifier.startsWith(".")) return join(dirname(file), specifier);
  const [, name, path = "index"] = /^@parley\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  return name ? `packages/${name}/src/${path}.ts` : specifier;
}

function importsOf(source: string): Import[] {
  const { code, strings } = blank(source);
  const text = (place: string | undefined) => strings[Number(place)] as string;
  const statements = code.matchAll(
    /(?<![.\w$])(?:import|export)\b(?<clause>[^"();]*?\bfrom)?\s*"(?<place>\d+)"/g,
  );
  const calls = code.matchAll(
    /(?<![.\w$])(?:import|require|new URL)\s*\(\s*"(?<place>\d+)"(?=\s*[),])/g,
  );
  return [...statements, ...calls]
    .toSorted((one, other) => one.index - other.index)
    .map(({ groups }) => ({ specifier: text(groups?.place), types: typesOnly(groups?.clause) }));
}

function typesOnly(clause = ""): boolean {
  if (/^\s*type\b(?!\s*(?:,|from\b))/.test(clause)) return true;
  const names = /^\s*\{([^}]*)\}/
    .exec(clause)?.[1]
    ?.split(",")
    .filter((name) => name.trim());
  return names?.every((name) => /^\s*type\s/.test(name)) ?? false;
}

function readsEnvironment(source: string): boolean {
  const { code } = blank(source);
  return (
    /\b(process|Bun|import\s*\.\s*meta)\s*\.\s*env\b/.test(code) ||
    /\{[^{}]*\benv\b[^{}]*\}\s*=\s*(process|Bun)\b/.test(code) ||
    importsOf(source).some(({ specifier }) => /^(node:)?process$/.test(specifier))
  );
}

const PIECE = new RegExp(
  [
    /\/\/[^\n]*|\/\*[\s\S]*?\*\//, // comments
    /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/, // strings
    /(?<=(?:^|[=(,:[!&|?{};+\-*%~^<>\n]|\breturn|\btypeof|\bcase)\s*)\/(?![*/])(?:[^/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/, // regular expressions
    /`|\$\{|[{}]/, // templates, and the braces that tell where their expressions end
  ]
    .map(({ source }) => `(${source})`)
    .join("|"),
  "g",
);

/** The code with comments, templates and regular expressions left out, and its strings numbered. */
function blank(source: string): { code: string; strings: string[] } {
  const strings: string[] = [];
  const keep = (text: string) => `"${strings.push(text) - 1}"`;
  let code = "";
  let at = 0;
  // For each template that is open: how many braces are open in its expression.
  const templates: number[] = [];
  PIECE.lastIndex = 0;
  for (let piece = PIECE.exec(source); piece; piece = PIECE.exec(source)) {
    code += source.slice(at, piece.index);
    const [token, , string] = piece;
    let end = PIECE.lastIndex;
    const depth = templates.at(-1);
    if (string) code += keep(string.slice(1, -1));
    else if (token === "`" || (token === "}" && depth === 0)) {
      if (token === "}") templates.pop();
      const text = templateText(source, end);
      end = text.end;
      if (text.opens) templates.push(0);
      code += token === "`" && !text.opens ? keep(source.slice(piece.index + 1, end - 1)) : " ";
    } else if (token === "{" || token === "${") {
      if (depth !== undefined) templates[templates.length - 1] = depth + 1;
      code += token;
    } else if (token === "}") {
      if (depth !== undefined) templates[templates.length - 1] = depth - 1;
      code += token;
    } else code += " ";
    at = end;
    PIECE.lastIndex = end;
  }
  return { code: code + source.slice(at), strings };
}

/** Reads a template's text up to its end, or up to the next expression in it. */
function templateText(source: string, from: number): { end: number; opens: boolean } {
  const end = /(?:[^`\\$]|\\[\s\S]|\$(?!\{))*(`|\$\{)/y;
  end.lastIndex = from;
  const found = end.exec(source);
  return { end: found ? end.lastIndex : source.length, opens: found?.[1] === "${" };
}

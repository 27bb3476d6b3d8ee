import { type Costs, costOf } from "./costs.ts";
import { reach, testFiles, textOf } from "./files.ts";
import type { Job } from "./job.ts";

export type Suite = "unit" | "test" | "all";

/** Builds of packages, images and executables, several nodes under faults, and long runs. */
const LONG = /^tests\/(cluster|deploy)\//;
/** Tests of these folders that need no process still belong to `unit`. */
const STARTS_PROCESS = /\bBun\.spawn|node:child_process|playwright-core|new Worker\(/;
const TEST_CODE = /^(tests|packages\/testkit)\/|\/test\//;
/** They start no process of ours, but take as much time as many others together. */
const NOT_UNIT = [
  "packages/protocol/test/hostile-markup.test.ts",
  "packages/server/test/context-files.test.ts",
  "packages/server/test/hostile-tool-servers.test.ts",
  "packages/server/test/webhooks.test.ts",
  "tests/hostile-markdown.test.ts",
];

/**
 * Files that run once more on two nodes: those whose outcome depends on the order of events or on
 * calls that meet. What only reads its input, such as limits and errors, is the same on any node.
 */
const TWO_NODES = [
  "tests/agents-equal-state.test.ts",
  "tests/events-equal-state.test.ts",
  "tests/oidc.test.ts",
  "tests/presence-equal-state.test.ts",
  ...[
    "account-deletion",
    "agent-chats",
    "agent-files",
    "agents",
    "approvals",
    "blocks",
    "catch-up",
    "changes",
    "components",
    "conversations",
    "deletion",
    "elicitation",
    "external-agents",
    "files",
    "group-agents",
    "import-messages",
    "incoming-hooks",
    "members",
    "messages",
    "named-agents",
    "operators",
    "pictures",
    "presence",
    "reactions",
    "reading",
    "sessions",
    "socket",
    "tool-calls",
    "tools",
    "turn-control",
    "turn-failures",
    "turn-streaming",
    "typing",
    "users",
    "waiting-turns",
    "webhooks",
  ].map((name) => `tests/conformance/${name}.test.ts`),
];

/** Whether the file runs without another process: nothing that it imports of the tests starts one. */
const isUnit = (file: string): boolean =>
  !NOT_UNIT.includes(file) &&
  ![...reach(file).keys()].some(
    (each) => TEST_CODE.test(each) && STARTS_PROCESS.test(textOf(each)),
  );

/** Which files can run in one process, and how many at most. */
const SHARING: readonly { most: number; can: (file: string, cpu: number) => boolean }[] = [
  // Starting a process costs more than small unit tests do.
  { most: 30, can: (file, cpu) => cpu < 0.5 && isUnit(file) },
  // One browser and one server.
  { most: 8, can: (file) => /\bsharedHarness\(/.test(textOf(file)) },
  { most: 10, can: (file) => /\bsharedServer\(/.test(textOf(file)) },
];

/** Gives files that can share it one process for many, about as much work to each process. */
export function together(jobs: readonly Job[], costs: Costs): Job[] {
  const left = new Set(jobs);
  const groups = SHARING.flatMap(({ most, can }) => {
    const files = jobs
      .filter((job) => left.has(job) && !job.variant && can(job.file, costOf(job, costs).cpu))
      .toSorted((one, other) => costOf(other, costs).cpu - costOf(one, costs).cpu);
    for (const job of files) left.delete(job);
    const dealt = Array.from({ length: Math.ceil(files.length / most) }, () => ({
      files: [] as string[],
      cpu: 0,
    }));
    for (const job of files) {
      const open = dealt.filter(({ files }) => files.length < most);
      const least = open.reduce((one, other) => (other.cpu < one.cpu ? other : one));
      least.files.push(job.file);
      least.cpu += costOf(job, costs).cpu;
    }
    return dealt.map(({ files: [file = "", ...more] }): Job => ({ file, more }));
  });
  return [...left, ...groups];
}

/** Whether chance decides what the tests of a file do: these run longer in `all`. */
const isRandom = (file: string) => reach(file).has("packages/testkit/src/rounds.ts");

/** The runs of a suite. */
export function jobsOf(suite: Suite): Job[] {
  const jobs: Job[] = testFiles().map((file) => ({ file }));
  if (suite === "unit") return jobs.filter(({ file }) => isUnit(file));
  if (suite === "test") return jobs.filter(({ file }) => suiteOf(file) !== "all");
  const random = jobs.filter(({ file }) => isRandom(file));
  return [
    ...jobs,
    ...TWO_NODES.map((file): Job => ({ file, variant: "on two nodes" })),
    ...random.map(({ file }): Job => ({ file, variant: "at full count" })),
  ];
}

/** The smallest suite that has the file. */
export function suiteOf(file: string): Suite {
  if (isUnit(file)) return "unit";
  return LONG.test(file) ? "all" : "test";
}

import { startNats } from "@parley/testkit/nats.ts";
import { installed } from "@parley/testkit/packages.ts";
import { postgresPrograms, startPostgres } from "@parley/testkit/postgres.ts";
import { executable } from "@parley/testkit/program.ts";
import { toolsFolder } from "@parley/testkit/tools.ts";
import { reach } from "./files.ts";
import { filesOf, type Job } from "./job.ts";

interface Need {
  name: string;
  /** Whoever imports this file needs it. */
  file: string;
  /** Installs it if it is missing and this is root; throws with the name of its package otherwise. */
  prepare(): unknown;
}

const NEEDS: readonly Need[] = [
  {
    name: "Chromium",
    file: "tests/browser/support.ts",
    prepare: () => installed("chromium-headless-shell", "chromium-headless-shell"),
  },
  { name: "PostgreSQL", file: "packages/testkit/src/postgres.ts", prepare: postgresPrograms },
  {
    name: "NATS",
    file: "packages/testkit/src/nats.ts",
    prepare: () => installed("nats-server", "nats-server"),
  },
  {
    name: "Alertmanager",
    file: "tests/conformance/incoming-hooks.test.ts",
    prepare: () => installed("prometheus-alertmanager", "prometheus-alertmanager"),
  },
  { name: "packages of tests/tools", file: "packages/testkit/src/tools.ts", prepare: toolsFolder },
  { name: "a build of the program", file: "packages/testkit/src/program.ts", prepare: executable },
];

/** Says what the jobs need, and makes it ready. */
export function prepareNeeds(jobs: readonly Job[], say: (line: string) => void): void {
  const files = reachOf(jobs);
  const needs = NEEDS.filter(({ file }) => files.has(file));
  if (needs.length === 0) return;
  say(`This run needs ${needs.map(({ name }) => name).join(", ")}.`);
  for (const { prepare } of needs) prepare();
}

/** The PostgreSQL that jobs share, and what the jobs on two nodes run with, as far as they need it. */
export async function startServices(jobs: readonly Job[]) {
  await using started = new AsyncDisposableStack();
  const onTwoNodes = jobs.some(({ variant }) => variant === "on two nodes");
  const needsPostgres = reachOf(jobs).has("packages/testkit/src/postgres.ts");
  const postgres = needsPostgres ? started.use(await startPostgres()).url : "";
  const nats = onTwoNodes ? started.use(await startNats()).url : "";
  const all = started.move();
  return {
    /** The settings of a job. */
    env: ({ variant }: Job): Record<string, string> => ({
      ...(postgres && { PARLEY_TEST_POSTGRES: postgres }),
      ...(variant === "on two nodes" && {
        PARLEY_TEST_SERVICES: JSON.stringify({ postgres, nats }),
      }),
      ...(variant === "at full count" && { PARLEY_TEST_FULL: "1" }),
    }),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const reachOf = (jobs: readonly Job[]) =>
  new Set(jobs.flatMap(filesOf).flatMap((file) => [...reach(file).keys()]));

import { mkdirSync, rmSync } from "node:fs";
import type { Copy } from "./copy.ts";

/** Many faults make a test wait for what does not happen. Browser tests have a longer timeout of their own. */
const TEST_TIMEOUT_MS = 60_000;
const FILE_TIMEOUT_MS = 600_000;
/** What fails before the tests, such as `beforeAll`. */
const UNNAMED = "(unnamed)";
/** How long processes get to end by themselves. */
const END_MS = 3000;

/** What came of a test file, up to the first test that failed. */
export type Outcome =
  | { readonly kind: "passed" }
  /** `test` is null if it was not a single one, such as when the whole file took too long. */
  | { readonly kind: "failed"; readonly test: string | null; readonly timedOut: boolean }
  /** No test ran, such as when the file cannot be loaded. */
  | { readonly kind: "broken"; readonly output: string };

/** Runs a test file, or one test of it, and ends all processes that it has started. */
export async function runTests(
  { root, temporary }: Copy,
  file: string,
  signal: AbortSignal,
  only: string | null = null,
): Promise<Outcome> {
  signal.throwIfAborted();
  mkdirSync(temporary, { recursive: true });
  const filter = only === null ? [] : ["--test-name-pattern", patternOf(only)];
  const child = Bun.spawn(
    [
      process.execPath,
      "test",
      "--bail=1",
      "--timeout",
      `${TEST_TIMEOUT_MS}`,
      ...filter,
      `./${file}`,
    ],
    {
      cwd: root,
      env: { ...process.env, TMPDIR: temporary, NO_COLOR: "1" },
      stdout: "pipe",
      stderr: "pipe",
      // In a process group of its own, by which everything that it starts is ended.
      detached: true,
    },
  );
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    void endGroup(child.pid);
  }, FILE_TIMEOUT_MS);
  const stop = () => void endGroup(child.pid);
  signal.addEventListener("abort", stop);
  const texts = [child.stdout, child.stderr].map((stream) => new Response(stream).text());
  const exitCode = await child.exited;
  clearTimeout(late);
  signal.removeEventListener("abort", stop);
  await endGroup(child.pid);
  rmSync(temporary, { recursive: true, force: true });
  const output = (await Promise.all(texts)).join("\n");
  signal.throwIfAborted();
  if (exitCode === 0) return { kind: "passed" };
  const failed = failureIn(output);
  if (failed) return failed;
  if (isLate) return { kind: "failed", test: null, timedOut: true };
  return { kind: "broken", output: output.trim() };
}

/** The first failed test that the output of `bun test` names. */
function failureIn(output: string): Outcome | null {
  const found = /^\(fail\) (.+?)(?: \[[\d.]+m?s\])?\n(\s+\^ this test timed out)?/m.exec(output);
  if (!found) return null;
  const [, name = "", timeout] = found;
  return { kind: "failed", test: name === UNNAMED ? null : name, timedOut: timeout !== undefined };
}

/** `bun test` prints `>` between the names of groups and the test, and searches them with only spaces. */
function patternOf(test: string): string {
  const words = test.split(" > ").map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return `^${words.join("( | > )")}$`;
}

/** Interrupts the processes of a group, and kills those that are left after a while. */
async function endGroup(group: number): Promise<void> {
  if (!send("SIGINT", group)) return;
  const until = performance.now() + END_MS;
  while (send(0, group)) {
    if (performance.now() > until) return void send("SIGKILL", group);
    await Bun.sleep(20);
  }
}

/** False if the group has no processes. */
function send(what: NodeJS.Signals | 0, group: number): boolean {
  try {
    return process.kill(-group, what);
  } catch {
    return false;
  }
}

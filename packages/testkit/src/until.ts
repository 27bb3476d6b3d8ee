const TIMEOUT_MS = 120_000;
const MAX_PAUSE_MS = 20;

/** Polls until the condition holds. Throws after two minutes, with what was waited for. */
export async function until(condition: () => unknown, what: string): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  for (let pauseMs = 1; !(await condition()); pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for: ${what}`);
    await Bun.sleep(pauseMs);
  }
}

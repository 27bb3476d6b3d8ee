const TIMEOUT_MS = 60_000;

/** Polls until the condition holds. Throws after a minute, with what was waited for. */
export async function until(condition: () => unknown, what: string): Promise<void> {
  const deadline = Date.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`timed out waiting for: ${what}`);
    await Bun.sleep(2);
  }
}

const PATIENCE_MS = 60_000;

/** Waits until something has come about, and says what did not. */
export async function until(condition: () => unknown, what: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`still not: ${what}`);
    await Bun.sleep(2);
  }
}

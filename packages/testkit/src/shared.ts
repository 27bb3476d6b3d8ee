/** What the test files of a process share, in the order in which it was started. */
const started = new Map<string, Promise<AsyncDisposable>>();

/** Starts something once for all test files of this process. It ends after the last of them. */
export function shared<Resource extends AsyncDisposable>(
  name: string,
  start: () => Promise<Resource>,
): Promise<Resource> {
  const known = started.get(name) as Promise<Resource> | undefined;
  if (known) return known;
  const starting = start();
  started.set(name, starting);
  return starting;
}

/** Ends what is shared, the latest first. */
export async function endShared(): Promise<void> {
  for (const starting of [...started.values()].reverse()) {
    // What could not start has failed the tests that wait for it.
    const resource = await starting.catch(() => null);
    await resource?.[Symbol.asyncDispose]();
  }
  started.clear();
}

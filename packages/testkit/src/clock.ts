/** The variable that tells a test server by how many milliseconds its clock is ahead at its start. */
export const INITIAL_MOVE = "TEST_CLOCK_MOVE_MS";

/** The message that moves the clock of a test server. It replies with the id. */
export interface ClockMove {
  id: number;
  ms: number;
}

const waiting = new Map<number, () => void>();
let lastId = 0;

/** Receives the replies of test servers. */
export const receiveClockReply = (id: number): void => waiting.get(id)?.();

/**
 * Moves the clock of a test server forward. Resolves when the timers that became due have fired; what
 * they started may still be under way.
 */
export async function moveClock(server: Bun.Subprocess, ms: number): Promise<void> {
  const id = ++lastId;
  const replied = new Promise<void>((resolve) => waiting.set(id, resolve));
  const ended = server.exited.then(() => {
    throw new Error("the server whose clock is moved has ended");
  });
  server.send({ id, ms } satisfies ClockMove);
  await Promise.race([replied, ended]).finally(() => waiting.delete(id));
}

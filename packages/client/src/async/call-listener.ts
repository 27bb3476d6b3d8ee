/**
 * Calls a listener of the program. What it throws is reported as an uncaught error, so that it
 * affects neither other listeners nor the work that the client is about to do.
 */
export function callListener(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

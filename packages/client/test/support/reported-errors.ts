import { spyOn } from "bun:test";

/**
 * Collects what listeners throw, instead of reporting it as uncaught: the test runner fails tests
 * with uncaught errors, even if they are handled.
 */
export function collectReportedErrors() {
  const errors: unknown[] = [];
  const spy = spyOn(globalThis, "queueMicrotask").mockImplementation((task) => {
    try {
      task();
    } catch (error) {
      errors.push(error);
    }
  });
  return { errors, [Symbol.dispose]: () => spy.mockRestore() };
}

import type { Operations } from "../types.ts";

export type Call = (name: string, input: object) => Promise<unknown>;

/**
 * An object with every operation as a method. The names are not listed here, so that an operation
 * added to the contract can be called at once.
 */
export function createOperations(call: Call): Operations {
  return new Proxy({} as Operations, {
    get: (target, key) =>
      isOperation(key) ? (input: object = {}) => call(key, input) : Reflect.get(target, key),
  });
}

/** Operation names are a verb and an object. `JSON.stringify` asks every object for `toJSON`. */
const isOperation = (key: string | symbol): key is string =>
  typeof key === "string" && /^[a-z]+[A-Z]/.test(key) && key !== "toJSON";

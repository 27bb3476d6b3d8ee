import type { Operations } from "../types.ts";

export type Call = (name: string, input: object) => Promise<unknown>;

/**
 * Every operation of the contract as a method. Their names are the contract's alone: an operation
 * added there can be called here at once.
 */
export function operationsOver(call: Call): Operations {
  return new Proxy({} as Operations, {
    get: (target, key) =>
      isOperation(key) ? (input: object = {}) => call(key, input) : Reflect.get(target, key),
  });
}

/** All are a verb and its object; `toJSON` is asked of any object that is printed. */
const isOperation = (key: string | symbol): key is string =>
  typeof key === "string" && /^[a-z]+[A-Z]/.test(key) && key !== "toJSON";

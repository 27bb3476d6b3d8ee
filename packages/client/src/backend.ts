import { callHttp, TIMEOUT_MS } from "./connection/http.ts";
import { createOperations } from "./connection/operations.ts";
import type { Backend, BackendOptions, Operations, UserName } from "./types.ts";

/** Calls the service with the service key of a product's backend. Not for browsers: the key can act for everybody. */
export function createBackend(options: BackendOptions): Backend {
  const { key, timeoutMs = TIMEOUT_MS, fetch = globalThis.fetch } = options;
  const url = options.url.replace(/\/+$/, "");
  const operationsFor = (actsFor?: string): Operations =>
    createOperations((name, input) =>
      callHttp({ url, timeoutMs, fetch, ...(actsFor && { actsFor }) }, name, input, key),
    );
  const methods: Omit<Backend, keyof Operations> = {
    as: (user) => operationsFor(nameOf(user)),
  };
  return Object.setPrototypeOf(methods, operationsFor()) as Backend;
}

/** The header has bytes of UTF-8, each of which `fetch` takes as a character. */
function nameOf(user: UserName): string {
  const name = typeof user === "string" ? user : `id:${user.external_id}`;
  // An empty header would make the call in the backend's own right.
  if (name === "") throw new TypeError("`as` needs a username or an external id");
  return String.fromCharCode(...new TextEncoder().encode(name));
}

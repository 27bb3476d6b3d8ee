/** A value that a backend returns synchronously or as a promise. Callers always await it. */
export type Awaitable<Value> = Value | Promise<Value>;

/** What a backend returns at once or as a promise: callers always await it. */
export type Awaitable<Value> = Value | Promise<Value>;

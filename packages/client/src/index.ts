export { createClient } from "./client.ts";
export { isCallError } from "./errors.ts";
export type * from "./types.ts";

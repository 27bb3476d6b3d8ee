import { join } from "node:path";

export const ROOT = join(import.meta.dir, "../../..");
/** What tests make once and use again in later runs. */
export const CACHE = join(ROOT, "node_modules/.cache/parley-tests");

export * from "./errors.ts";
export * from "./events.ts";
export * from "./frames.ts";
export * from "./operation.ts";
export * from "./operations/index.ts";
export * from "./records.ts";
export { AGENT_NAME, BLANK, isBlank } from "./text/fields.ts";
export * from "./text/names.ts";
export * from "./text/normalized.ts";

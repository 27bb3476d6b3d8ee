import { callsAsText, haveCalls } from "../rules/calls-as-text.ts";
import { haveFiles, withoutFiles } from "../rules/context-files.ts";
import { haveProviderFields, withoutProviderFields } from "../rules/provider-fields.ts";
import type { ModelRequest } from "./providers/adapter.ts";
import { ProviderError } from "./providers/provider-errors.ts";

interface Fallback {
  readonly request: ModelRequest;
  /** What it does not have, for the log. */
  readonly leftOut: "tools" | "provider fields" | "files" | "calls";
}

/** How providers refuse calls without thoughts. Others mean no credit or an unknown model. */
const INVALID: ReadonlySet<number | undefined> = new Set([400, 422]);

/**
 * Many models take no pictures, some know no tools, take back nothing that they sent or want back all
 * of it, and documents can be damaged. Returns the request without what the provider may have refused;
 * null if nothing can be left out.
 */
export function fallback(request: ModelRequest, error: unknown): Fallback | null {
  if (!(error instanceof ProviderError) || error.status === undefined) return null;
  const { messages, tools } = request;
  // A provider that was told the results of calls accepts tools.
  if (error.about_tools && tools.length > 0 && !haveCalls(messages)) {
    return { request: { ...request, tools: [] }, leftOut: "tools" };
  }
  const isTooLong = error.code === "context_too_long";
  if (!isTooLong && error.code !== "provider_refused") return null;
  if (haveProviderFields(messages)) {
    const plain = withoutProviderFields(messages);
    return { request: { ...request, messages: plain }, leftOut: "provider fields" };
  }
  // Before the files, which a model that wants its thoughts back may see.
  if (!isTooLong && INVALID.has(error.status) && haveCalls(messages)) {
    return { request: { ...request, messages: callsAsText(messages) }, leftOut: "calls" };
  }
  if (!haveFiles(messages)) return null;
  const visible = withoutFiles(messages, isTooLong ? "too_large" : "not_accepted");
  return { request: { ...request, messages: visible }, leftOut: "files" };
}

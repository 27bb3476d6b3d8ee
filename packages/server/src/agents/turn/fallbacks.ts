import type { ModelMessage } from "../../rules/model-content.ts";
import {
  callsAsText,
  haveCalls,
  haveFiles,
  haveProviderFields,
  withoutFiles,
  withoutProviderFields,
} from "../../rules/refused-content.ts";
import type { ModelRequest } from "../providers/adapter.ts";
import { ProviderError } from "../providers/provider-errors.ts";

/** Leaves out of a request what a provider may have refused. */
export type Fallback = NonNullable<ReturnType<typeof fallback>>;

/** Statuses that may mean a refusal of calls without thoughts. Others mean no credit or an unknown model. */
const INVALID: ReadonlySet<number | undefined> = new Set([400, 422]);

/**
 * Many models accept no pictures, and documents can be damaged. Some models accept no tools, some reject
 * the fields and thoughts of earlier calls, and others reject calls without them. Returns what to leave
 * out of the refused request; null if nothing can be.
 */
export function fallback(request: ModelRequest, error: unknown) {
  if (!(error instanceof ProviderError) || error.status === undefined) return null;
  const { messages, tools } = request;
  // A provider that was told the results of calls accepts tools.
  if (isAboutTools(error) && tools.length > 0 && !haveCalls(messages)) {
    return { leftOut: "tools", apply: (each: ModelRequest) => ({ ...each, tools: [] }) };
  }
  const isTooLong = error.code === "context_too_long";
  if (!isTooLong && error.code !== "provider_refused") return null;
  if (haveProviderFields(messages)) return inMessages("provider fields", withoutProviderFields);
  // Before the files: a model that wants its thoughts back may accept them.
  if (!isTooLong && INVALID.has(error.status) && haveCalls(messages)) {
    return inMessages("calls", callsAsText);
  }
  if (!haveFiles(messages)) return null;
  const reason = isTooLong ? "too_large" : "not_accepted";
  return inMessages("files", (each) => withoutFiles(each, reason));
}

const isAboutTools = ({ error }: ProviderError) =>
  error.code === "provider_refused" && error.parameters?.reason === "tools";

const inMessages = (
  leftOut: string,
  change: (messages: readonly ModelMessage[]) => ModelRequest["messages"],
) => ({
  leftOut,
  apply: (request: ModelRequest): ModelRequest => ({
    ...request,
    messages: change(request.messages),
  }),
});

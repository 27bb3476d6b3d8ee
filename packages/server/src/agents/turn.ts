import type { Turn } from "@parley/protocol";
import { type Ending, endTurn } from "../domain/turns.ts";
import { haveFiles, withoutFiles } from "../rules/context-files.ts";
import { type Store, Unavailable } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";
import type { ContextFiles } from "./context-files/index.ts";
import type { AnswerStream, Deltas } from "./deltas.ts";
import { fetchForKey, type KeyServices, openKey, operatorKeyError } from "./keys.ts";
import { type PreparedTurn, prepareTurn } from "./prepare-turn.ts";
import type { ModelEvent, ModelRequest } from "./providers/adapter.ts";
import { callModel } from "./providers/call.ts";
import { adapters } from "./providers/index.ts";
import { ProviderError, providerErrors } from "./providers/provider-errors.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface TurnServices extends KeyServices {
  /** The name of this process among those that share the store. */
  node: string;
  store: Store;
  deltas: Deltas;
  contextFiles: ContextFiles;
}

/** How long to wait between attempts to end a turn while the store is unavailable. */
const END_RETRY_MS = 500;

/** Runs a claimed turn that has its message: calls the model, streams the answer, ends the turn. */
export async function runTurn(
  services: TurnServices,
  id: number,
  call: AbortController,
): Promise<void> {
  const progress: Progress = { content: "", usage: {} };
  using files = services.contextFiles.open(call.signal);
  let ending: Ending;
  try {
    const prepared = await prepareTurn(services, id, files);
    if (!prepared || call.signal.aborted) return;
    await streamAnswer(services, prepared, call, progress);
    // The turn was ended elsewhere while the rest of the answer was stored.
    if (call.signal.aborted) return;
    ending = { status: "complete", ...resultOf(progress) };
  } catch (error) {
    // The turn was ended elsewhere, or the process stops: this node must not end it.
    if (call.signal.aborted) return;
    // Nothing was streamed, so the turn is run again after its lease expires.
    if (error instanceof Unavailable && progress.content === "") return;
    ending = { status: "failed", error: turnError(error, services, id), ...resultOf(progress) };
  }
  await storeEnding(services, id, ending);
}

/** Retries for as long as the store is unavailable: only this node has the whole answer. */
async function storeEnding({ store, node }: TurnServices, id: number, ending: Ending) {
  for (;;) {
    try {
      return await store.write((tx) => endTurn(tx, id, ending, node));
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      await Bun.sleep(END_RETRY_MS);
    }
  }
}

/** What the model has sent so far. The store may have less of it. */
interface Progress {
  content: string;
  usage: { input_tokens?: number; output_tokens?: number };
}

/** Usage is null unless the provider reported both counts. It is estimated then. */
function resultOf({ content, usage }: Progress): Pick<Ending, "content" | "usage"> {
  const { input_tokens, output_tokens } = usage;
  const isComplete = input_tokens !== undefined && output_tokens !== undefined;
  return { content, usage: isComplete ? { input_tokens, output_tokens } : null };
}

async function streamAnswer(
  services: TurnServices,
  { turn, agent, provider, context, max_output_tokens }: PreparedTurn,
  call: AbortController,
  progress: Progress,
): Promise<void> {
  const { config, deltas } = services;
  const { api_key, source } = openKey(services, agent);
  const sandbox = fetchForKey(api_key, config);
  const stream = deltas.open(turn, call);
  const attempts = attemptCounter(services, turn);
  const request: ModelRequest = {
    system: context.system,
    messages: context.messages,
    model: source === "operator" ? provider.model : turn.model,
    max_output_tokens,
    api_key,
    base_url: provider.base_url,
    signal: call.signal,
  };
  const answer = (messages: ModelRequest["messages"]) => {
    const options = { ...sandbox, backpressure: stream.backpressure, onAttempt: attempts.store };
    const events = callModel(adapters[provider.protocol], { ...request, messages }, options);
    return writeEvents(events, stream, progress);
  };
  try {
    await answer(context.messages).catch((error) => {
      if (!isRefusal(error) || !haveFiles(context.messages) || stream.written() !== "") throw error;
      services.log.warn(
        { turn: turn.id, status: error.status },
        "provider refused request with files",
      );
      const why = error.code === "context_too_long" ? "too_large" : "not_accepted";
      return answer(withoutFiles(context.messages, why));
    });
  } catch (error) {
    await stream.end();
    if (source === "own") throw error;
    throw operatorKeyError(error, turn.agent.provider ?? "", services);
  } finally {
    progress.content = stream.written();
    // The receipt must be complete when the turn ends.
    await attempts.stored();
  }
  await stream.end();
}

/**
 * Whether the provider may accept the request without files: many models take no pictures, and
 * documents can be damaged.
 */
const isRefusal = (error: unknown): error is ProviderError =>
  error instanceof ProviderError &&
  error.status !== undefined &&
  (error.code === "provider_refused" || error.code === "context_too_long");

async function writeEvents(
  events: AsyncIterable<ModelEvent>,
  stream: AnswerStream,
  progress: Progress,
): Promise<void> {
  for await (const event of events) {
    if (event.type === "text") stream.write(event.text);
    if (event.type === "usage") {
      const { type: _, ...counts } = event;
      Object.assign(progress.usage, counts);
    }
    // An empty message would leave people without an answer, an error or a way to retry.
    if (event.type === "end" && stream.written().trim() === "") {
      throw providerErrors.emptyAnswer(event.reason);
    }
  }
}

/** Stores the number of attempts in the background, in order. */
function attemptCounter({ store, log }: TurnServices, { id }: TurnRecord) {
  let pending = Promise.resolve();
  let attempts = 0;
  return {
    store(): void {
      const attempt = ++attempts;
      pending = pending
        .then(() => store.note((tx) => tx.noteTries(id, attempt)))
        .catch((error) => log.error({ err: error, turn: id }, "turn attempt count not stored"));
    },
    stored: () => pending,
  };
}

function turnError(error: unknown, { log }: TurnServices, id: number): NonNullable<Turn["error"]> {
  if (error instanceof TurnFailed || error instanceof ProviderError) {
    return { code: error.code, message: error.message };
  }
  if (error instanceof Unavailable) {
    return { code: "interrupted", message: "The answer was interrupted. Try again." };
  }
  // Only the name is logged: the error may contain a key or what a provider wrote.
  log.error({ turn: id, name: error instanceof Error ? error.name : typeof error }, "turn failed");
  return { code: "internal", message: "Something went wrong here. Try again." };
}

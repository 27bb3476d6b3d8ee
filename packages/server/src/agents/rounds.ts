import type { Turn } from "@parley/protocol";
import { cardAfter } from "../rules/approval-card.ts";
import type { AssistantPart, ModelMessage, ToolResultPart } from "../rules/model-content.ts";
import { estimateTokens } from "../rules/token-estimate.ts";
import { partTokens } from "../rules/tool-context.ts";
import { addUsage, tokensOf, totalUsage } from "../rules/usage.ts";
import type { TurnRecord, TurnRound } from "../store/turns.ts";
import type { AnswerStream, Deltas } from "./deltas.ts";
import { type Fallback, fallback } from "./fallbacks.ts";
import { type AgentKey, type KeyServices, openKey, operatorKeyError, sourceOf } from "./keys.ts";
import { type PreparedTurn, reserveRound } from "./prepare-turn.ts";
import type { ModelOutput, ModelRequest, ToolUse } from "./providers/adapter.ts";
import { callModel } from "./providers/call.ts";
import { type ProviderError, providerErrors } from "./providers/provider-errors.ts";
import { definitionOf } from "./tools/offered.ts";
import { type CallServices, makeCalls, storeCalls } from "./tools/run-calls.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface RoundServices extends KeyServices, Omit<CallServices, "config" | "log"> {
  deltas: Deltas;
}

/** A turn that asks for more calls fails. */
const MAX_CALLS = 16;

/** What the model has sent so far. The store may have less of it. */
export interface Progress {
  content: string;
  /** The calls of the model that have ended. */
  rounds: TurnRound[];
  /** Of a turn that failed while the model wrote or thought; null if `rounds` has all. */
  usage: Turn["usage"];
}

export const newProgress = (): Progress => ({ content: "", rounds: [], usage: null });

/**
 * Asks the model, makes the calls that it asks for, and asks it again with their results, until it
 * asks for no more or a call waits for the owner.
 */
export async function streamAnswer(
  services: RoundServices,
  prepared: PreparedTurn,
  running: AbortController,
  progress: Progress,
): Promise<void> {
  const stream = services.deltas.open(prepared.turn, running);
  const attempts = attemptRecorder(services, prepared.turn);
  try {
    const refused: Fallback[] = [];
    await answerInRounds({ services, prepared, running, progress, stream, attempts, refused });
  } catch (error) {
    await stream.end();
    throw error;
  } finally {
    progress.content = stream.written();
    // The receipt must be complete when the turn ends.
    await attempts.stored();
  }
  await stream.end();
}

interface Answering {
  readonly services: RoundServices;
  readonly prepared: PreparedTurn;
  readonly running: AbortController;
  readonly progress: Progress;
  readonly stream: AnswerStream;
  readonly attempts: ReturnType<typeof attemptRecorder>;
  /** What the provider has refused in this turn. It is left out of later requests too. */
  readonly refused: Fallback[];
}

async function answerInRounds(answering: Answering): Promise<void> {
  const { services, prepared, running, progress, stream } = answering;
  const key = openKey(services, prepared.agent);
  const made: ModelMessage[] = [];
  let { input_tokens } = prepared.context;
  let { max_output_tokens } = prepared;
  for (let calls = 0; ; ) {
    const request = { made, input_tokens, max_output_tokens };
    const { text, uses, end } = await askModel(answering, key, request);
    if (uses.length === 0) {
      // An empty message would leave people without an answer, an error or a way to retry.
      if (stream.written().trim() === "" && calls === 0) throw providerErrors.emptyAnswer(end);
      return;
    }
    if (calls + uses.length > MAX_CALLS) throw tooManyCalls();
    const place = { ...prepared, signal: running.signal };
    const stored = await storeCalls(services, place, {
      uses,
      offered: prepared.tools,
      isDirect: prepared.isDirect,
      text_bytes: Buffer.byteLength(stream.written()),
      earlier: calls,
      rounds: progress.rounds,
    });
    if (!stored) return running.abort();
    const results = await makeCalls(services, place, stored);
    const pending = results.calls.filter(({ status }) => status === "pending");
    if (pending.length > 0) {
      stream.write(cardAfter(stream.written(), pending));
      return;
    }
    calls += uses.length;
    const said = roundMessages(text, uses, results.parts);
    made.push(...said);
    input_tokens += partTokens(said) + results.tokens;
    const spent_tokens = tokensOf(totalUsage(progress.rounds));
    const reserved = await reserveRound(services, prepared, { spent_tokens, input_tokens });
    if (reserved === null) return running.abort();
    max_output_tokens = reserved;
  }
}

const tooManyCalls = () => new TurnFailed({ code: "tool_limit", parameters: { max: MAX_CALLS } });

/** What the model wrote and asked for, and the results, as it is told in the next round. */
const roundMessages = (
  text: string,
  uses: readonly ToolUse[],
  results: readonly ToolResultPart[],
): ModelMessage[] => {
  const calls = uses.map((use): AssistantPart => ({ ...use, input: use.input ?? {} }));
  const said: AssistantPart[] = text.trim() === "" ? [] : [{ type: "text", text: text.trim() }];
  return [
    { role: "assistant", content: [...said, ...calls] },
    { role: "user", content: [...results] },
  ];
};

interface RoundRequest {
  readonly made: readonly ModelMessage[];
  /** Estimated. */
  readonly input_tokens: number;
  readonly max_output_tokens: number;
}

interface ModelAnswer {
  readonly text: string;
  readonly uses: readonly ToolUse[];
  readonly end: "stop" | "length";
}

/** Calls the model once and streams its text. What it used is added to the rounds. */
async function askModel(
  answering: Answering,
  key: AgentKey,
  { made, input_tokens, max_output_tokens }: RoundRequest,
): Promise<ModelAnswer> {
  const { services, prepared, running, progress, stream, attempts } = answering;
  const { context, provider, turn } = prepared;
  const tools = [...prepared.tools.values()].map(definitionOf);
  const request: ModelRequest = {
    system: context.system,
    messages: [...context.messages, ...made],
    tools,
    model: key.source === "operator" ? provider.model : turn.model,
    max_output_tokens,
    api_key: key.api_key,
    base_url: provider.base_url,
    signal: running.signal,
  };
  const began = performance.now();
  const before = stream.written().length;
  const answer = newAnswer(stream, attempts.reported);
  const written = () => stream.written().slice(before);
  /** What the provider reported, and estimates of what it did not. */
  const used = () => ({
    input_tokens,
    output_tokens: estimateTokens(written() + answer.hidden()),
    ...answer.usage,
  });
  try {
    await askWithFallbacks(answering, key, request, answer);
  } catch (error) {
    if (answer.isCharged()) {
      const earlier = totalUsage(progress.rounds);
      progress.usage = earlier ? addUsage(earlier, used()) : used();
    }
    throw key.source === "own"
      ? error
      : operatorKeyError(error, turn.agent.provider ?? "", services);
  }
  const duration_ms = Math.round(performance.now() - began);
  progress.rounds.push({ duration_ms, usage: used() });
  return { text: written(), uses: answer.uses, end: answer.end() };
}

/** Collects what the model sends. Its text goes to the stream, apart from that of earlier rounds. */
function newAnswer(stream: AnswerStream, reportedInput: (tokens: number) => void) {
  const uses: ToolUse[] = [];
  const usage: Partial<NonNullable<Turn["usage"]>> = {};
  let end: "stop" | "length" = "stop";
  let hasText = false;
  let isCharged = false;
  let hidden = "";
  function writeText(text: string): void {
    const before = stream.written();
    const isNewRound = !hasText && before !== "" && !before.endsWith("\n");
    hasText = true;
    stream.write(isNewRound ? `\n\n${text}` : text);
  }
  return {
    uses,
    usage,
    end: () => end,
    /** What nobody sees: thoughts and the arguments of calls. */
    hidden: () => hidden,
    /** Whether the model has produced anything or ended, which the provider charges for. */
    isCharged: () => isCharged,
    async take(outputs: AsyncIterable<ModelOutput>): Promise<void> {
      for await (const output of outputs) {
        isCharged = true;
        if (output.type === "text") writeText(output.text);
        else if (output.type === "thinking") hidden += output.text;
        else if (output.type === "tool_use") uses.push(output);
        else if (output.type === "usage") {
          const { type: _, ...counts } = output;
          Object.assign(usage, counts);
          if (counts.input_tokens) reportedInput(counts.input_tokens);
        } else end = output.reason === "length" ? "length" : "stop";
      }
    },
  };
}

/** A request that the provider refuses is made again without what it may have refused. */
async function askWithFallbacks(
  { services, prepared, stream, attempts, refused }: Answering,
  { api_key }: AgentKey,
  request: ModelRequest,
  answer: ReturnType<typeof newAnswer>,
): Promise<void> {
  const { turn, provider } = prepared;
  const source = sourceOf(api_key, provider, services.config);
  const options = {
    backpressure: stream.backpressure,
    onAttempt: attempts.started,
    onRetry: attempts.refused,
  };
  for (;;) {
    const current = refused.reduce((each, { apply }) => apply(each), request);
    try {
      return await answer.take(callModel(source, current, options));
    } catch (error) {
      const other = answer.isCharged() ? null : fallback(current, error);
      if (other === null) throw error;
      refused.push(other);
      const { status } = error as ProviderError;
      services.log.warn(
        { turn: turn.id, status },
        `provider refused request with ${other.leftOut}`,
      );
    }
  }
}

/** Stores in the background, in order, what is known of the attempts: others may end the turn. */
function attemptRecorder({ store, log }: RoundServices, { id, tries: earlier }: TurnRecord) {
  let pending = Promise.resolve();
  let tries = earlier;
  const record = (input_tokens: number | null) => {
    const attempt = { tries, input_tokens };
    pending = pending
      .then(() => store.note((tx) => tx.setAttempt(id, attempt)))
      .catch((error) => log.error({ err: error, turn: id }, "turn attempt not stored"));
  };
  return {
    started(): void {
      tries++;
      record(null);
    },
    refused: () => record(0),
    reported: (input_tokens: number) => record(input_tokens),
    stored: () => pending,
  };
}

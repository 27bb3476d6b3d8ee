import type { Turn } from "@parley/protocol";
import { addUsage, totalUsage } from "../../rules/budget.ts";
import type { ModelMessage } from "../../rules/model-content.ts";
import { estimateTokens } from "../../rules/token-estimate.ts";
import type { TurnRound } from "../../store/turns.ts";
import type { AnswerStream } from "../deltas.ts";
import { openKey, operatorKeyError, sourceOf } from "../keys.ts";
import type { ModelOutput, ModelRequest, ToolUse } from "../providers/adapter.ts";
import { callModel } from "../providers/call.ts";
import type { ProviderError } from "../providers/provider-errors.ts";
import { definitionOf } from "../tools/offered.ts";
import { type Fallback, fallback } from "./fallbacks.ts";
import type { PreparedTurn } from "./prepare.ts";

/** What the model of a turn has sent so far. The store may have less of it. */
export interface Written {
  content: string;
  /** The calls of the model that have ended. */
  readonly rounds: TurnRound[];
  /** Of a turn that failed while the model wrote or thought; null if `rounds` has all. */
  usage: Turn["usage"];
}

export const nothingWritten = (): Written => ({ content: "", rounds: [], usage: null });

interface ModelQuestion {
  /** What the model wrote earlier in the turn, and the results of its calls. */
  readonly made: readonly ModelMessage[];
  /** Estimated. */
  readonly input_tokens: number;
  readonly max_output_tokens: number;
}

export type TurnModel = ReturnType<typeof openModel>;
export type ModelAnswer = Awaited<ReturnType<TurnModel["ask"]>>;

/** The model of one turn, and the stream that its texts go to. Throws a `TurnFailed` if there is no key. */
export function openModel(prepared: PreparedTurn, running: AbortController, written: Written) {
  const { turn, agent, provider, context } = prepared;
  const { api_key, source: payer } = openKey(prepared, agent);
  const source = sourceOf(api_key, provider, prepared.config);
  const stream = prepared.deltas.open(turn, running);
  const attempts = attemptRecorder(prepared);
  /** What the provider has refused in this turn. It is left out of later requests too. */
  const refused: Fallback[] = [];
  const options = {
    backpressure: stream.backpressure,
    onAttempt: attempts.started,
    onRetry: attempts.refused,
  };

  /** A request that the provider refuses is made again without what it may have refused. */
  async function call(request: ModelRequest, answer: ReturnType<typeof newAnswer>): Promise<void> {
    for (;;) {
      const current = refused.reduce((each, { apply }) => apply(each), request);
      try {
        return await answer.take(callModel(source, current, options));
      } catch (error) {
        const other = answer.isCharged() ? null : fallback(current, error);
        if (other === null) throw error;
        refused.push(other);
        const { status } = error as ProviderError;
        const message = `provider refused request with ${other.leftOut}`;
        prepared.log.warn({ turn: turn.id, status }, message);
      }
    }
  }

  return {
    stream,
    /** Calls the model once. What it used is added to the rounds, what it wrote is in the stream. */
    async ask({ made, input_tokens, max_output_tokens }: ModelQuestion) {
      const began = performance.now();
      const before = stream.written().length;
      const answer = newAnswer(stream, attempts.reported);
      const text = () => stream.written().slice(before);
      /** What the provider reported, and estimates of what it did not. */
      const used = () => ({
        input_tokens,
        output_tokens: estimateTokens(text() + answer.hidden()),
        ...answer.usage,
      });
      const request: ModelRequest = {
        system: context.system,
        messages: [...context.messages, ...made],
        tools: [...prepared.tools.values()].map(definitionOf),
        model: payer === "operator" ? provider.model : turn.model,
        max_output_tokens,
        api_key,
        base_url: provider.base_url,
        signal: running.signal,
      };
      try {
        await call(request, answer);
      } catch (error) {
        if (answer.isCharged()) {
          const earlier = totalUsage(written.rounds);
          written.usage = earlier ? addUsage(earlier, used()) : used();
        }
        if (payer === "own") throw error;
        throw operatorKeyError(error, turn.agent.provider ?? "", prepared);
      }
      const duration_ms = Math.round(performance.now() - began);
      written.rounds.push({ duration_ms, usage: used() });
      return { text: text(), uses: answer.uses, end: answer.end() };
    },
    /** Resolves when all that was streamed and recorded is stored. */
    async close() {
      written.content = stream.written();
      // The receipt must be complete when the turn ends.
      await attempts.stored();
      await stream.end();
    },
  };
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

/** Stores in the background, in order, what is known of the attempts: others may end the turn. */
function attemptRecorder({ store, log, turn: { id, tries: earlier } }: PreparedTurn) {
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

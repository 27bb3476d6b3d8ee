import type { TurnError, TurnFacts } from "@parley/protocol";
import { type Ending, endTurn } from "../domain/turns.ts";
import { cardAfter } from "../rules/approval-card.ts";
import { tokensOf, totalUsage } from "../rules/budget.ts";
import type { AssistantPart, ModelMessage, ToolResultPart } from "../rules/model-content.ts";
import { partTokens } from "../rules/tool-context.ts";
import { Unavailable } from "../store/store.ts";
import { providerErrors } from "./providers/provider-errors.ts";
import { offeredTools } from "./tools/offered.ts";
import {
  type ModelAnswer,
  nothingWritten,
  openModel,
  type TurnModel,
  type Written,
} from "./turn/ask-model.ts";
import { hasRequestedCalls, startWaitingCalls, storeCalls } from "./turn/choose-calls.ts";
import { makeCalls } from "./turn/make-calls.ts";
import {
  admitTurn,
  type PreparedTurn,
  prepareTurn,
  reserveRound,
  type TurnServices,
} from "./turn/prepare.ts";
import { TurnFailed } from "./turn-failed.ts";

/** A turn that asks for more calls fails. */
const MAX_CALLS = 16;
/** How long to wait between attempts to end a turn while the store is unavailable. */
const END_RETRY_MS = 500;

/**
 * The life of a claimed turn that has its message. `running` is aborted when the turn is ended
 * elsewhere, or the process stops: this node must not end it then.
 */
export async function runTurn(services: TurnServices, id: number, running: AbortController) {
  const written = nothingWritten();
  let ending: Ending;
  try {
    const isAnswered = await answerTurn(services, id, running, written);
    if (!isAnswered || running.signal.aborted) return;
    ending = { status: "complete", ...resultOf(written) };
  } catch (error) {
    if (running.signal.aborted) return;
    // Nothing was streamed, so the turn is run again after its lease expires.
    if (error instanceof Unavailable && written.content === "" && written.rounds.length === 0)
      return;
    ending = { status: "failed", error: reasonOf(error, services, id), ...resultOf(written) };
  }
  await storeEnding(services, id, ending);
}

/** Answers a turn, and fills `written`, also before an error. False if this node no longer runs it. */
async function answerTurn(
  services: TurnServices,
  id: number,
  running: AbortController,
  written: Written,
): Promise<boolean> {
  const { signal } = running;
  using files = services.contextFiles.open(signal);
  const admitted = await services.store.read((tx) => admitTurn(tx, services, id));
  if (!admitted) return false;
  const place = { ...admitted, files, signal };
  // Some providers offer models that know no tools.
  const offered =
    admitted.provider.tools === false
      ? new Map()
      : await offeredTools(services.toolServers, admitted.agent, signal);
  // A person who presses a button must not make calls beyond the limits. What the owner approved is made.
  if (await hasRequestedCalls(place)) await prepareTurn(place, offered);
  await makeCalls(place, await startWaitingCalls(place, offered));
  const prepared = await prepareTurn(place, offered);
  if (!prepared || signal.aborted) return false;
  const model = openModel(prepared, running, written);
  try {
    return await answerInRounds(prepared, model, written);
  } finally {
    await model.close();
  }
}

/**
 * Asks the model, makes the calls that it asks for, and continues with their results, until it asks
 * for no more or a call waits for the owner. False if this node no longer runs the turn.
 */
async function answerInRounds(turn: PreparedTurn, { stream, ask }: TurnModel, { rounds }: Written) {
  const made: ModelMessage[] = [];
  let { input_tokens } = turn.context;
  let { max_output_tokens } = turn;
  for (let earlier = 0; ; ) {
    const answer = await ask({ made, input_tokens, max_output_tokens });
    const { uses } = answer;
    if (uses.length === 0) {
      // An empty message would leave people without an answer, an error or a way to retry.
      const isEmpty = earlier === 0 && stream.written().trim() === "";
      if (isEmpty) throw providerErrors.emptyAnswer(answer.end);
      return true;
    }

    if (earlier + uses.length > MAX_CALLS) throw tooManyCalls();
    const text_bytes = Buffer.byteLength(stream.written());
    const stored = await storeCalls(turn, { uses, text_bytes, earlier, rounds });
    if (!stored) return false;
    const { calls, parts, tokens } = await makeCalls(turn, stored);
    const pending = calls.filter(({ status }) => status === "pending");
    if (pending.length > 0) {
      stream.write(cardAfter(stream.written(), pending));
      return true;
    }

    earlier += uses.length;
    const said = roundMessages(answer, parts);
    made.push(...said);
    input_tokens += partTokens(said) + tokens;
    const spent_tokens = tokensOf(totalUsage(rounds));
    const reserved = await reserveRound(turn, { spent_tokens, input_tokens });
    if (reserved === null) return false;
    max_output_tokens = reserved;
  }
}

const tooManyCalls = () => new TurnFailed({ code: "tool_limit", parameters: { max: MAX_CALLS } });

/** What the model wrote and asked for, and the results, as it is told in the next round. */
const roundMessages = (
  { text, uses }: ModelAnswer,
  results: readonly ToolResultPart[],
): ModelMessage[] => {
  const calls = uses.map((use): AssistantPart => ({ ...use, input: use.input ?? {} }));
  const said: AssistantPart[] = text.trim() === "" ? [] : [{ type: "text", text: text.trim() }];
  return [
    { role: "assistant", content: [...said, ...calls] },
    { role: "user", content: [...results] },
  ];
};

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

const resultOf = ({ content, rounds, usage }: Written) => ({
  content,
  rounds,
  usage: usage ?? totalUsage(rounds),
});

function reasonOf(error: unknown, { log }: TurnServices, id: number): TurnFacts | TurnError {
  if (error instanceof TurnFailed) return error.error;
  if (error instanceof Unavailable) {
    return { code: "interrupted", parameters: { reason: "unavailable" } };
  }
  // Only the name is logged: the error may contain a key or what a provider wrote.
  log.error({ turn: id, name: error instanceof Error ? error.name : typeof error }, "turn failed");
  return { code: "internal", parameters: { reason: "server" } };
}

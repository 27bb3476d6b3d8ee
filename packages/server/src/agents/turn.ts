import type { TurnError, TurnFacts } from "@parley/protocol";
import { type Ending, endTurn } from "../domain/turns.ts";
import { totalUsage } from "../rules/usage.ts";
import { Unavailable } from "../store/store.ts";
import type { ContextFiles } from "./context-files/index.ts";
import { type AdmittedTurn, admitTurn, prepareTurn } from "./prepare-turn.ts";
import { newProgress, type Progress, type RoundServices, streamAnswer } from "./rounds.ts";
import { type OfferedTool, offeredTools } from "./tools/offered.ts";
import { hasRequestedCalls, makeWaitingCalls } from "./tools/waiting-calls.ts";
import { TurnFailed } from "./turn-failed.ts";

/** What a turn needs. */
export interface TurnServices extends RoundServices {
  contextFiles: ContextFiles;
}

/** How long to wait between attempts to end a turn while the store is unavailable. */
const END_RETRY_MS = 500;

/** Runs a claimed turn that has its message: calls the model, streams the answer, ends the turn. */
export async function runTurn(
  services: TurnServices,
  id: number,
  running: AbortController,
): Promise<void> {
  const progress = newProgress();
  using files = services.contextFiles.open(running.signal);
  let ending: Ending;
  try {
    const admitted = await services.store.read((tx) => admitTurn(tx, services, id));
    if (!admitted) return;
    const { signal } = running;
    const offered = await toolsFor(services, admitted, signal);
    const place = { ...admitted, files, signal };
    // A person who presses a button must not make calls beyond the limits. What the owner approved is made.
    if (await hasRequestedCalls(services, place)) await prepareTurn(services, id, files, offered);
    await makeWaitingCalls(services, place, offered);
    const prepared = await prepareTurn(services, id, files, offered);
    if (!prepared || signal.aborted) return;
    await streamAnswer(services, prepared, running, progress);
    // The turn was ended elsewhere while the rest of the answer was stored.
    if (running.signal.aborted) return;
    ending = { status: "complete", ...resultOf(progress) };
  } catch (error) {
    // The turn was ended elsewhere, or the process stops: this node must not end it.
    if (running.signal.aborted) return;
    // Nothing was streamed, so the turn is run again after its lease expires.
    if (error instanceof Unavailable && progress.content === "" && progress.rounds.length === 0)
      return;
    ending = { status: "failed", error: reasonOf(error, services, id), ...resultOf(progress) };
  }
  await storeEnding(services, id, ending);
}

/** The tools that the model may use. Some providers offer models that know none. */
const toolsFor = (
  { toolServers }: TurnServices,
  { agent, provider }: AdmittedTurn,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, OfferedTool>> =>
  provider.tools === false ? Promise.resolve(new Map()) : offeredTools(toolServers, agent, signal);

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

function resultOf({
  content,
  rounds,
  usage,
}: Progress): Pick<Ending, "content" | "usage" | "rounds"> {
  return { content, rounds, usage: usage ?? totalUsage(rounds) };
}

function reasonOf(error: unknown, { log }: TurnServices, id: number): TurnFacts | TurnError {
  if (error instanceof TurnFailed) return error.error;
  if (error instanceof Unavailable) {
    return { code: "interrupted", parameters: { reason: "unavailable" } };
  }
  // Only the name is logged: the error may contain a key or what a provider wrote.
  log.error({ turn: id, name: error instanceof Error ? error.name : typeof error }, "turn failed");
  return { code: "internal", parameters: { reason: "server" } };
}

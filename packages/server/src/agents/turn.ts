import type { Turn } from "@parley/protocol";
import type { Provider } from "../config.ts";
import { type Ending, endTurn } from "../domain/turns.ts";
import { grant } from "../rules/budget.ts";
import { type ModelContext, modelContext } from "../rules/context.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import { type ReadTx, type Store, Unavailable } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";
import type { Deltas } from "./deltas.ts";
import { carrierOf, type KeyServices, keyMissing, storedKey } from "./keys.ts";
import { callModel } from "./providers/call.ts";
import { adapters } from "./providers/index.ts";
import { ProviderError } from "./providers/provider.ts";
import { TurnFailed } from "./turn-failed.ts";

export interface TurnServices extends KeyServices {
  /** The name of this process among those that share the store. */
  node: string;
  store: Store;
  deltas: Deltas;
}

/** How many of the latest messages are looked at; the token budget keeps fewer. */
const LOOKED_AT = 400;
/** How far beyond a message the answers to earlier ones are looked for. */
const LATER_ANSWERS = 1000;
/** Between tries to end a turn while the store is away. */
const PAUSE_MS = 500;

/** Runs a turn that has its message: asks the model, streams what it says, and ends the turn. */
export async function runTurn(
  services: TurnServices,
  id: number,
  call: AbortController,
): Promise<void> {
  const progress: Progress = { content: "", usage: {} };
  let ending: Ending;
  try {
    const prepared = await prepare(services, id);
    if (!prepared || call.signal.aborted) return;
    await answer(services, prepared, call, progress);
    // Not all of it could be stored, though all of it was said.
    if (call.signal.aborted) return;
    ending = { status: "complete", ...soFar(progress) };
  } catch (error) {
    // Somebody ended it, or the process stops: either way it is no longer ours to end.
    if (call.signal.aborted) return;
    // Once its lease has run out it is taken up again, as if this node had died.
    if (error instanceof Unavailable && progress.content === "") return;
    ending = { status: "failed", error: described(error, services, id), ...soFar(progress) };
  }
  await end(services, id, ending);
}

/** However long the store is away: nobody else knows that the answer is whole. */
async function end({ store, node }: TurnServices, id: number, ending: Ending): Promise<void> {
  for (;;) {
    try {
      return await store.write((tx) => endTurn(tx, id, ending, node));
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      await Bun.sleep(PAUSE_MS);
    }
  }
}

/** How far an answer has come, whatever the store still has of it. */
interface Progress {
  content: string;
  usage: { input_tokens?: number; output_tokens?: number };
}

/** What the provider counted, if it said all of it; otherwise it is estimated. */
function soFar({ content, usage }: Progress): Pick<Ending, "content" | "usage"> {
  const { input_tokens, output_tokens } = usage;
  const counted = input_tokens !== undefined && output_tokens !== undefined;
  return { content, usage: counted ? { input_tokens, output_tokens } : null };
}

interface Prepared {
  turn: TurnRecord;
  agent: AgentRecord;
  provider: Provider;
  context: ModelContext;
  max_output_tokens: number;
}

/** Everything that is settled before the provider hears of it. Null when the turn has ended meanwhile. */
async function prepare(
  { node, store, config }: TurnServices,
  id: number,
): Promise<Prepared | null> {
  return store.write(async (tx) => {
    const turn = await tx.turn(id);
    if (turn?.status !== "running" || turn.node !== node) return null;
    if (turn.refusal !== null) throw new TurnFailed("budget_exceeded", turn.refusal);
    const agent = await tx.agent(turn.agent.id);
    const provider = config.providers.get(turn.agent.provider ?? "");
    const conversation = await tx.conversation(turn.conversation_uuid, turn.agent.id);
    if (!agent || !provider || !conversation) {
      throw new TurnFailed(
        "provider_unavailable",
        "This agent's provider is no longer offered here.",
      );
    }
    if (agent.sealed_key === null) throw keyMissing(agent);
    const upTo = await endOfContext(tx, turn, conversation);
    const context = modelContext({
      agent: agent.account,
      owner: agent.owner,
      instructions: agent.instructions,
      conversation,
      participants: (await tx.members(conversation.id)).map(({ account }) => account),
      messages: await tx.contextMessages({
        conversationId: conversation.id,
        viewerId: agent.owner.id,
        upTo,
        answers: {
          agentId: turn.agent.id,
          upTo: upTo + LATER_ANSWERS,
          toBefore: turn.trigger_seq,
        },
        limit: LOOKED_AT,
      }),
      context_tokens: provider.context_tokens,
      max_output_tokens: provider.max_output_tokens,
    });
    if (turn.trigger_deleted && !context.isAsked) {
      throw new TurnFailed("interrupted", "The message was deleted before it was answered.");
    }
    // A turn counts for the day on which it began, here as where it is settled.
    const begun = turn.started_at ?? Date.now();
    const spent = await tx.spending(agent.account.id, conversation.id, begun);
    const granted = grant(agent.limits, spent, context.input_tokens, provider.max_output_tokens);
    if ("refusal" in granted) throw new TurnFailed("budget_exceeded", granted.refusal);
    const max_output_tokens = granted.output_tokens;
    await tx.reserveTurn(turn, {
      input_tokens: context.input_tokens,
      output_tokens: max_output_tokens,
      context_ids: context.ids,
    });
    return { turn, agent, provider, context, max_output_tokens };
  });
}

/** A turn is asked with everything up to the next message that has a turn of its own. */
async function endOfContext(
  tx: ReadTx,
  turn: TurnRecord,
  conversation: ConversationRecord,
): Promise<number> {
  if (!turn.open_ended) return turn.trigger_seq;
  const later = (await tx.openTurns(conversation.id)).filter(
    ({ agent, status, open_ended, trigger_seq }) =>
      agent.id === turn.agent.id &&
      status === "waiting" &&
      open_ended &&
      trigger_seq > turn.trigger_seq,
  );
  return Math.min(conversation.seq, ...later.map(({ trigger_seq }) => trigger_seq - 1));
}

async function answer(
  services: TurnServices,
  { turn, agent, provider, context, max_output_tokens }: Prepared,
  call: AbortController,
  progress: Progress,
): Promise<void> {
  const { config, store, deltas, log } = services;
  const api_key = storedKey(services, agent);
  const carrier = carrierOf(api_key, config);
  const stream = deltas.open(turn, call);
  let noted = Promise.resolve();
  const request = {
    system: context.system,
    messages: context.messages,
    model: turn.model,
    max_output_tokens,
    api_key,
    base_url: provider.base_url,
    signal: call.signal,
  };
  const events = callModel(adapters[provider.protocol], request, {
    ...carrier,
    wanted: stream.wanted,
    onTry: (attempt) => {
      noted = noted
        .then(() => store.note((tx) => tx.noteTries(turn.id, attempt)))
        .catch((error) => log.error({ err: error, turn: turn.id }, "a try was not noted"));
    },
  });
  try {
    for await (const event of events) {
      if (event.type === "text") stream.write(event.text);
      if (event.type !== "usage") continue;
      const { type: _, ...counted } = event;
      Object.assign(progress.usage, counted);
    }
  } catch (error) {
    await stream.end();
    throw error;
  } finally {
    progress.content = stream.written();
    // The receipt is whole when the turn has ended.
    await noted;
  }
  await stream.end();
}

function described(error: unknown, { log }: TurnServices, id: number): NonNullable<Turn["error"]> {
  if (error instanceof TurnFailed || error instanceof ProviderError) {
    return { code: error.code, message: error.message };
  }
  if (error instanceof Unavailable) {
    return { code: "interrupted", message: "The answer was interrupted. Try again." };
  }
  // Never the error itself: it may hold what a provider or an owner would not want told.
  log.error(
    { turn: id, name: error instanceof Error ? error.name : typeof error },
    "a turn failed",
  );
  return { code: "internal", message: "Something went wrong here. Try again." };
}

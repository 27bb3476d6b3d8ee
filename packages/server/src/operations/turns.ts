import { operations } from "@parley/protocol";
import { transient } from "../changes/change.ts";
import { deltaOf, endTurn } from "../domain/turns.ts";
import { bind } from "../operation.ts";
import { EXTERNAL_LEASE_MS, EXTERNAL_NODE } from "../rules/agents.ts";
import { conflict, Failure, notFound } from "../rules/failure.ts";
import type { AgentCaller } from "../security/caller.ts";
import type { ReadTx, Store } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";

/** The longest answer of an external agent: about what models write at most. */
const MAX_ANSWER_BYTES = 131_072;

const claimTurn = bind(operations.claimTurn, ({ externalTurns, caller, signal }, input) =>
  externalTurns.claim(caller, {
    turnId: input.turn_id ?? null,
    waitMs: (input.wait_seconds ?? 0) * 1000,
    signal: signal(),
  }),
);

const writeTurn = bind(operations.writeTurn, async (context, { turn_id, delta, offset }) => {
  const { store, caller, externalTurns } = context;
  externalTurns.seen(caller.account);
  const turn = await store.read((tx) => claimedTurn(tx, turn_id, caller));
  const end = offset + Buffer.byteLength(delta);
  if (end > MAX_ANSWER_BYTES) throw await beyondEnd(store, turn, offset, caller);
  const chunk = { turn_id, text: delta, offset: end, first: offset === 0, at: Date.now() };
  const isStored = await store.note(async (tx) => {
    // First, since it locks the turn: of two calls at once, the second finds the turn locked when it
    // appends, and its unit runs again, instead of both appending at the same offset.
    await tx.renewLeases(EXTERNAL_NODE, [turn_id], EXTERNAL_LEASE_MS);
    if (delta === "") return (await tx.streamedBytes(turn.message_id ?? 0)) === offset;
    const refused = await tx.appendChunks(EXTERNAL_NODE, [chunk]);
    if (refused.length > 0) return false;
    tx.signal(deltaOf(turn, delta, end));
    return true;
  });
  if (!isStored) throw await wrongOffset(store, turn_id, caller);
  return { offset: end };
});

/** Why text is not stored that would end beyond the longest answer: it does not fit, or begins elsewhere. */
async function beyondEnd(
  store: Store,
  { id, message_id }: TurnRecord,
  offset: number,
  caller: AgentCaller,
): Promise<Failure> {
  const written = await store.read((tx) => tx.streamedBytes(message_id ?? 0));
  if (written !== offset) return wrongOffset(store, id, caller);
  const why = `payload too large: an answer has at most ${MAX_ANSWER_BYTES} bytes`;
  return new Failure("payload_too_large", why);
}

/** Why text was not stored: the turn has ended meanwhile, or the text does not continue the answer. */
async function wrongOffset(store: Store, id: number, caller: AgentCaller): Promise<Failure> {
  return store.read(async (tx) => {
    const { message_id } = await claimedTurn(tx, id, caller);
    const offset = await tx.streamedBytes(message_id ?? 0);
    const why = `conflict: the answer has ${offset} bytes: the text must begin there`;
    return new Failure("conflict", why, { offset });
  });
}

const setTurnStatus = bind(operations.setTurnStatus, async (context, { turn_id, text }) => {
  const { store, caller, externalTurns } = context;
  externalTurns.seen(caller.account);
  await store.write(async (tx) => {
    const turn = await claimedTurn(tx, turn_id, caller);
    await tx.renewLeases(EXTERNAL_NODE, [turn_id], EXTERNAL_LEASE_MS);
    const params = { message_id: turn.message_uuid ?? "", text };
    tx.signal(transient("events.turnStatus", params, { conversation: turn.conversation_uuid }));
  });
});

const finishTurn = bind(operations.finishTurn, async (context, input) => {
  const { store, caller, externalTurns } = context;
  const { turn_id, usage = null } = input;
  externalTurns.seen(caller.account);
  await store.write(async (tx) => {
    const turn = await claimedTurn(tx, turn_id, caller);
    const isBlank = (await tx.streamed(turn.message_id ?? 0)).trim() === "";
    const message = failureOf(input, isBlank);
    await endTurn(
      tx,
      turn_id,
      message === null
        ? { status: "complete", usage }
        : { status: "failed", usage, error: { code: "agent_failed", message } },
      EXTERNAL_NODE,
    );
  });
});

export const turns = [claimTurn, writeTurn, setTurnStatus, finishTurn];

/** The sentence that the conversation shows; null if the turn has not failed. */
function failureOf(
  { status, error }: { status: "complete" | "failed"; error?: string | undefined },
  isBlank: boolean,
): string | null {
  if (status === "failed") return error ?? "The program of this agent failed. Try again.";
  // An empty message would leave people without an answer, an error or a way to retry.
  return isBlank ? "The program of this agent gave no answer. Try again." : null;
}

/** A turn that a program of the calling agent has claimed and that has not ended. */
async function claimedTurn(tx: ReadTx, id: number, { account }: AgentCaller): Promise<TurnRecord> {
  const turn = await tx.turn(id);
  if (turn?.agent.id !== account.id) throw notFound("turn");
  if (turn.status === "waiting") throw conflict("the turn is not claimed");
  if (turn.status !== "running" || turn.node !== EXTERNAL_NODE) {
    throw conflict("the turn has ended");
  }
  return turn;
}

import type { Message } from "@parley/protocol";
import type { WriteTx } from "../../../src/store/store.ts";
import type { FinishedTurn, NewTurn, TurnRecord } from "../../../src/store/turns.ts";
import { type Chat, type Fixture, newAgent, START, send } from "./fixture.ts";

/** A group of Alice, Bob and Alice's agent, with helpers for the agent's turns. */
export async function agentFixture({ store, people, group, send: say }: Fixture) {
  const [alice, bob] = await people("alice", "bob");
  const agent = await store.write((tx) => newAgent(tx, alice, "claude"));
  const chat = await group(alice, bob, agent);
  const queue = (trigger: Message, rest: Partial<NewTurn> = {}) =>
    store.write(async (tx) => {
      const conversation_id = rest.conversation_id ?? chat.id;
      await tx.openTurns(conversation_id);
      await tx.queueTurn({
        agent_id: agent.id,
        conversation_id,
        trigger_uuid: trigger.id,
        open_ended: true,
        refusal: null,
        most_waiting: 16,
        at: START,
        ...rest,
      });
    });
  const claim = (node = "here", most = 10) =>
    store.write(async (tx) => (await tx.claimTurns(node, 10_000, most)).turns);
  /** Sends a question and begins the turn that answers it. */
  const begin = async (where = chat, at = START) => {
    await queue(await say(where, alice, "question"), { conversation_id: where.id });
    const [turn] = (await claim()) as [TurnRecord];
    const message = await store.write((tx) => placeholder(tx, where, turn, at));
    return { id: turn.id, message };
  };
  const finish = (id: number, rest: Partial<FinishedTurn> = {}) =>
    store.write((tx) => finishTurn(tx, id, rest));
  const append = (id: number, text: string, offset: number, first = false, node = "here") =>
    store.write(async (tx) => {
      const chunk = { turn_id: id, text, offset, first, at: START + 5 };
      return (await tx.appendChunks(node, [chunk])).length === 0;
    });
  const turn = (id: number) => store.read((tx) => tx.turn(id));
  const open = () => store.read((tx) => tx.openTurns(chat.id));
  return { alice, bob, agent, chat, queue, claim, begin, finish, append, turn, open };
}

export async function placeholder(tx: WriteTx, chat: Chat, turn: TurnRecord, at = START) {
  const started = { status: "streaming", model: "m", error: null, usage: null } as const;
  await tx.turn(turn.id);
  const message = await send(tx, chat, turn.agent, "", {
    turn: { ...started, triggered_by: turn.trigger_uuid },
    at,
  });
  await tx.beginTurn(turn.id, { messageUuid: message.id, model: "m", at });
  return message;
}

export async function finishTurn(tx: WriteTx, id: number, rest: Partial<FinishedTurn> = {}) {
  const turn = await tx.turn(id);
  if (!turn) throw new Error("the turn is missing");
  const ending = { status: "complete", content: "answer", mentions: [], error: null } as const;
  return tx.finishTurn(turn, { ...ending, usage: null, at: START + 9, ...rest });
}

import { expect } from "bun:test";
import { beginTurn, endTurn } from "../../../src/domain/turns.ts";
import { EXTERNAL, EXTERNAL_NODE } from "../../../src/rules/agents.ts";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { agentFixture, placeholder } from "./agent-fixture.ts";
import { type Check, type Fixture, newAccount, START, times } from "./fixture.ts";

const LEASE_MS = 10_000;

/** The fixture of agents, with an external agent of Alice in a group of its own. */
async function externalFixture(fixture: Fixture) {
  const made = await agentFixture(fixture);
  const { alice } = made;
  const { store } = fixture;
  const program = await store.write((tx) =>
    newAccount(tx, {
      username: "alice:bot",
      kind: "agent",
      owner_id: alice.id,
      provider: EXTERNAL,
    }),
  );
  const own = await fixture.group(alice, program);
  const ask = async (where = own, at = START, refusal: string | null = null) => {
    const asked = await fixture.send(where, alice, "question");
    await made.queue(asked, { agent_id: program.id, conversation_id: where.id, refusal, at });
    return asked;
  };
  const claimOne = (turnId: number | null = null, leaseMs = LEASE_MS) =>
    store.write(async (tx) => {
      const { turn } = await tx.claimExternalTurn({ agentId: program.id, turnId }, leaseMs);
      return turn;
    });
  const claimable = () => store.read((tx) => tx.claimableTurns(program.id, 10));
  return { ...made, program, own, ask, claimOne, claimable };
}

export function externalTurns(check: Check) {
  check("turns of external agents are claimed by programs and not by nodes", async (fixture) => {
    const { own, ask, claim, claimOne, claimable, turn } = await externalFixture(fixture);
    const first = await ask();
    await ask();
    expect(await claim()).toEqual([]);
    expect((await claimable()).map(({ trigger_uuid }) => trigger_uuid)).toEqual([first.id]);
    const claimed = (await claimOne()) as TurnRecord;
    expect(claimed).toMatchObject({
      trigger_uuid: first.id,
      conversation_id: own.id,
      status: "running",
      node: EXTERNAL_NODE,
    });
    expect(await turn(claimed.id)).toEqual(claimed);
    expect(await claimOne()).toBeNull();
    expect(await claimable()).toEqual([]);
  });

  check("a refused turn of an external agent is left to a node", async (fixture) => {
    const { ask, claim, claimOne } = await externalFixture(fixture);
    const refused = await ask(undefined, START, "No.");
    expect(await claimOne()).toBeNull();
    expect(await claim()).toMatchObject([{ trigger_uuid: refused.id }]);
  });

  check(
    "a certain turn is claimed only if it is the first of its conversation",
    async (fixture) => {
      const { alice, program, ask, claimOne, claimable, finish } = await externalFixture(fixture);
      const other = await fixture.group(alice, program);
      await ask();
      await ask(other);
      const later = await ask(other);
      const [, head] = (await claimable()) as [TurnRecord, TurnRecord];
      const waiting = await fixture.store.read((tx) => tx.openTurns(other.id));
      const second = waiting.find(({ trigger_uuid }) => trigger_uuid === later.id) as TurnRecord;
      expect(await claimOne(second.id)).toBeNull();
      const claimed = (await claimOne(head.id)) as TurnRecord;
      expect(claimed.id).toBe(head.id);
      expect(await claimOne(head.id)).toBeNull();
      await fixture.store.write((tx) => placeholder(tx, other, claimed));
      await finish(claimed.id);
      expect(await claimOne(second.id)).toMatchObject({ id: second.id });
    },
  );

  check("concurrent claims of programs never return the same turn", async (fixture) => {
    const { alice, program, ask } = await externalFixture(fixture);
    for (const _ of times(6)) await ask(await fixture.group(alice, program));
    const takeAll = async (): Promise<TurnRecord[]> => {
      const wanted = { agentId: program.id, turnId: null };
      const { turn, busy } = await fixture.store.write((tx) =>
        tx.claimExternalTurn(wanted, LEASE_MS),
      );
      return turn || busy ? [...(turn ? [turn] : []), ...(await takeAll())] : [];
    };
    const taken = (await Promise.all(times(4).map(takeAll))).flat();
    expect(taken).toHaveLength(6);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(6);
  });

  check("a program's turn is abandoned when its lease has expired, not before", async (fixture) => {
    const { ask, claimOne } = await externalFixture(fixture);
    const { store } = fixture;
    const abandoned = () => store.write((tx) => tx.abandonedTurns("here"));
    await ask();
    const { id } = (await claimOne()) as TurnRecord;
    expect(await abandoned()).toEqual([]);
    await store.write((tx) => tx.renewLeases(EXTERNAL_NODE, [id], 0));
    expect(await abandoned()).toMatchObject([{ id, node: EXTERNAL_NODE }]);
    await store.write((tx) => tx.renewLeases(EXTERNAL_NODE, [id], LEASE_MS));
    expect(await abandoned()).toEqual([]);
  });

  check("text is stored only where the answer ends", async (fixture) => {
    const { own, ask, claimOne, append } = await externalFixture(fixture);
    await ask();
    const turn = (await claimOne()) as TurnRecord;
    await fixture.store.write((tx) => placeholder(tx, own, turn));
    const message_id = (await fixture.store.read((tx) => tx.turn(turn.id)))?.message_id ?? 0;
    const bytes = () => fixture.store.read((tx) => tx.streamedBytes(message_id));
    expect(await bytes()).toBe(0);
    expect(await append(turn.id, "Grüße", 7, true, EXTERNAL_NODE)).toBe(true);
    expect(await bytes()).toBe(7);
    expect(await append(turn.id, "Grüße", 7, false, EXTERNAL_NODE)).toBe(false);
    expect(await append(turn.id, "!", 9, false, EXTERNAL_NODE)).toBe(false);
    expect(await append(turn.id, "!", 8, false, EXTERNAL_NODE)).toBe(true);
    expect(await append(turn.id, "!", 9, false, "another")).toBe(false);
    expect(await fixture.store.read((tx) => tx.streamed(message_id))).toBe("Grüße!");
  });

  check("turns wait for an agent that was seen, and not for others", async (fixture) => {
    const { alice, program, ask, turn } = await externalFixture(fixture);
    const { store } = fixture;
    const other = await fixture.group(alice, program);
    const offline = (offlineMs: number) =>
      store.write((tx) => tx.claimOfflineTurns({ offlineMs, unclaimedMs: null }, LEASE_MS, 10));
    const seen = (withinMs: number) =>
      store.read((tx) => tx.agentsSeen([alice.id, program.id], withinMs));
    await ask(undefined, 0);
    await ask(other, Date.now() + 60_000);
    expect(await seen(60_000)).toEqual([]);
    await store.write((tx) => tx.noteAgentsSeen([program.id]));
    await store.write((tx) => tx.noteAgentsSeen([program.id, 999_999]));
    expect(await seen(60_000)).toEqual([program.id]);
    expect(await seen(-60_000)).toEqual([]);
    expect(await offline(60_000)).toEqual([]);
    // Not seen within the last milliseconds.
    const [gone, ...others] = await offline(-1000);
    expect(others).toEqual([]);
    expect(gone).toMatchObject({ status: "running", node: EXTERNAL_NODE });
    expect(await turn(gone?.id ?? 0)).toEqual(gone as TurnRecord);
  });

  check("turns do not wait for an agent that was seen and has claimed none", async (fixture) => {
    const { alice, program, ask, claimOne, turn } = await externalFixture(fixture);
    const { store } = fixture;
    const other = await fixture.group(alice, program);
    const offline = (unclaimedMs: number | null) =>
      store.write((tx) => tx.claimOfflineTurns({ offlineMs: 60_000, unclaimedMs }, LEASE_MS, 10));
    await ask(undefined, 0);
    await store.write((tx) => tx.noteAgentsSeen([program.id]));
    const { id } = (await claimOne()) as TurnRecord;
    await ask(other, 0);
    expect(await offline(null)).toEqual([]);
    // The program answers another turn.
    expect(await offline(-1000)).toEqual([]);
    await store.write(async (tx) => {
      const claimed = (await tx.turn(id)) as TurnRecord;
      const conversation = await tx.conversation(claimed.conversation_uuid, program.id);
      if (!conversation) throw new Error("there is no conversation");
      await beginTurn(tx, claimed, conversation, "");
      await tx.setAttempt(id, { tries: 1, input_tokens: null });
      await endTurn(tx, id, { status: "complete", content: "Hello" }, EXTERNAL_NODE);
    });
    // It ended one a moment ago.
    expect(await offline(60_000)).toEqual([]);
    const [unclaimed, ...others] = await offline(-1000);
    expect(others).toEqual([]);
    expect(unclaimed).toMatchObject({ status: "running", node: EXTERNAL_NODE });
    expect(await turn(unclaimed?.id ?? 0)).toEqual(unclaimed as TurnRecord);
  });
}

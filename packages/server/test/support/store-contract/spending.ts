import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { agentFixture } from "./agent-fixture.ts";
import { type Chat, type Check, type Fixture, START } from "./fixture.ts";

export function spending(check: Check) {
  const DAY = 86_400_000;
  const reserve = (
    fixture: Fixture,
    id: number,
    input_tokens: number,
    output_tokens: number,
    by_operator = false,
  ) =>
    fixture.store.write(async (tx) => {
      const turn = (await tx.turn(id)) as TurnRecord;
      const context_ids = [turn.trigger_uuid];
      const spent_tokens = 0;
      const reservation = { spent_tokens, input_tokens, output_tokens, context_ids, by_operator };
      await tx.reserveTurn(turn, reservation);
    });
  const adopt = (fixture: Fixture, id: number) =>
    fixture.store.write(async (tx) => {
      await tx.turn(id);
      await tx.adoptTurn(id, "there", 10_000);
    });

  check("a reservation counts until the turn ends, then its usage does", async (fixture) => {
    const { alice, agent, chat, begin, finish, turn } = await agentFixture(fixture);
    const other = await fixture.group(alice, agent);
    const spent = (where: Chat, now = START) =>
      fixture.store.read((tx) => tx.spending(agent.id, where.id, now));
    const { id } = await begin();
    await reserve(fixture, id, 100, 50);
    expect(await turn(id)).toMatchObject({
      reserved: 150,
      estimated_input: 100,
      context_ids: [(await turn(id))?.trigger_uuid],
    });
    expect(await spent(chat)).toEqual({ today: 150, todayHere: 150, turnsInMinute: 1 });
    expect(await spent(other)).toEqual({ today: 150, todayHere: 0, turnsInMinute: 1 });
    await finish(id, { usage: { input_tokens: 90, output_tokens: 10 } });
    expect(await turn(id)).toMatchObject({ reserved: 0 });
    expect(await spent(chat)).toEqual({ today: 100, todayHere: 100, turnsInMinute: 1 });
    const later = await begin(other);
    await reserve(fixture, later.id, 1, 2);
    await finish(later.id, { status: "failed", usage: null });
    expect(await spent(other)).toEqual({ today: 100, todayHere: 0, turnsInMinute: 2 });
    expect(await spent(chat, START + 60_001)).toMatchObject({ today: 100, turnsInMinute: 0 });
    expect(await spent(chat, START + DAY)).toEqual({ today: 0, todayHere: 0, turnsInMinute: 0 });
  });

  check("the reservation of an abandoned turn is released by its takeover", async (fixture) => {
    const { agent, chat, begin } = await agentFixture(fixture);
    const { id } = await begin();
    await reserve(fixture, id, 100, 50);
    await adopt(fixture, id);
    const spent = await fixture.store.read((tx) => tx.spending(agent.id, chat.id, START));
    expect(spent).toMatchObject({ today: 0, todayHere: 0 });
  });

  check(
    "what the operator pays for is counted for all agents of an owner and a provider",
    async (fixture) => {
      const { alice, bob, agent, chat, begin, finish, turn } = await agentFixture(fixture);
      const paid = (owner: AccountRecord, provider = "claude", now = START) =>
        fixture.store.read((tx) => tx.operatorSpending(owner.id, provider, now));
      const [own, provided] = [await begin(), await begin(await fixture.group(alice, agent))];
      await reserve(fixture, own.id, 100, 50);
      await reserve(fixture, provided.id, 10, 5, true);
      expect(await turn(own.id)).toMatchObject({ by_operator: false });
      expect(await turn(provided.id)).toMatchObject({ by_operator: true });
      expect(await paid(alice)).toBe(15);
      expect([await paid(bob), await paid(alice, "gpt")]).toEqual([0, 0]);
      expect(await paid(alice, "claude", START + DAY)).toBe(0);
      await finish(own.id, { usage: { input_tokens: 100, output_tokens: 1 } });
      await finish(provided.id, { usage: { input_tokens: 8, output_tokens: 4 } });
      expect(await paid(alice)).toBe(12);
      const failed = await begin();
      await reserve(fixture, failed.id, 100, 50, true);
      await finish(failed.id, { status: "failed", usage: null });
      expect(await paid(alice)).toBe(12);
      const spent = await fixture.store.read((tx) => tx.spending(agent.id, chat.id, START));
      expect(spent.today).toBe(113);
      const abandoned = await begin();
      await reserve(fixture, abandoned.id, 100, 50, true);
      await adopt(fixture, abandoned.id);
      expect(await paid(alice)).toBe(12);
    },
  );

  check("a turn that another key pays for is charged to it alone", async (fixture) => {
    const { alice, agent, begin, finish } = await agentFixture(fixture);
    const paid = () => fixture.store.read((tx) => tx.operatorSpending(alice.id, "claude", START));
    const provided = await begin();
    await reserve(fixture, provided.id, 100, 50);
    await reserve(fixture, provided.id, 10, 5, true);
    expect(await paid()).toBe(15);
    await finish(provided.id, { usage: { input_tokens: 8, output_tokens: 4 } });
    expect(await paid()).toBe(12);
    const own = await begin(await fixture.group(alice, agent));
    await reserve(fixture, own.id, 100, 50, true);
    await reserve(fixture, own.id, 10, 5);
    expect(await paid()).toBe(12);
    await finish(own.id, { usage: { input_tokens: 8, output_tokens: 4 } });
    expect(await paid()).toBe(12);
  });

  check(
    "what an agent used on the day of a new provider counts for every provider",
    async (fixture) => {
      const { alice, agent, begin, finish } = await agentFixture(fixture);
      const paid = (provider: string, now = START) =>
        fixture.store.read((tx) => tx.operatorSpending(alice.id, provider, now));
      const { id } = await begin();
      await reserve(fixture, id, 10, 5, true);
      await finish(id, { usage: { input_tokens: 8, output_tokens: 4 } });
      await fixture.store.write((tx) => tx.setAgentProvider(agent.id, "gpt", START));
      expect([await paid("claude"), await paid("gpt")]).toEqual([12, 12]);
      await fixture.store.write((tx) => tx.eraseAccount(agent, { messages: false, at: START + 1 }));
      expect([await paid("claude"), await paid("gpt")]).toEqual([12, 12]);
      expect(await paid("claude", START + DAY)).toBe(0);
    },
  );

  check("usage is listed by agent, conversation and day", async (fixture) => {
    const { alice, bob, agent, chat, begin, finish } = await agentFixture(fixture);
    const usage = { input_tokens: 10, output_tokens: 1 };
    for (const [day, status] of [
      [0, "complete"],
      [0, "failed"],
      [2, "stopped"],
    ] as const) {
      const { id } = await begin(chat, START + day * DAY);
      await finish(id, { status, usage, at: START + day * DAY });
    }
    const told = (owner: AccountRecord, since: number | null, until: number | null) =>
      fixture.store.read((tx) => tx.usage(owner.id, since, until));
    const row = (day: string, turnCount: number, failures: number) => ({
      agent: agent.username,
      conversation_id: chat.uuid,
      day,
      turns: turnCount,
      failures,
      input_tokens: 10 * turnCount,
      output_tokens: turnCount,
    });
    const [first, third] = [row("2026-11-15", 2, 1), row("2026-11-17", 1, 0)];
    expect(await told(alice, null, null)).toEqual([first, third]);
    expect(await told(alice, START + DAY, null)).toEqual([third]);
    expect(await told(alice, null, START + DAY)).toEqual([first]);
    expect(await told(alice, START, START + 2 * DAY)).toEqual([first, third]);
    expect(await told(bob, null, null)).toEqual([]);
  });

  check("a turn that runs past midnight counts for the day on which it began", async (fixture) => {
    const { alice, agent, chat, begin, finish } = await agentFixture(fixture);
    const { id } = await begin(chat, START + DAY - 1);
    await reserve(fixture, id, 100, 100);
    await finish(id, { usage: { input_tokens: 7, output_tokens: 7 }, at: START + DAY + 5 });
    const spent = (now: number) => fixture.store.read((tx) => tx.spending(agent.id, chat.id, now));
    expect(await spent(START + DAY - 1)).toMatchObject({ today: 14 });
    expect(await spent(START + DAY)).toMatchObject({ today: 0 });
    const days = await fixture.store.read((tx) => tx.usage(alice.id, null, null));
    expect(days.map(({ day }) => day)).toEqual(["2026-11-15"]);
  });
}

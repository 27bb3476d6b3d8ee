import { expect } from "bun:test";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { desk } from "./desk.ts";
import { type Check, type Room, START, type World } from "./world.ts";

export function spending(check: Check) {
  const DAY = 86_400_000;
  const reserve = (world: World, id: number, input_tokens: number, output_tokens: number) =>
    world.store.write(async (tx) => {
      const turn = (await tx.turn(id)) as TurnRecord;
      await tx.reserveTurn(turn, { input_tokens, output_tokens, context_ids: [turn.trigger_uuid] });
    });

  check("what is reserved counts until the turn is over, and then what was used", async (world) => {
    const { alice, agent, room, begin, finish, turn } = await desk(world);
    const other = await world.group(alice, agent);
    const spent = (where: Room, now = START) =>
      world.store.read((tx) => tx.spending(agent.id, where.id, now));
    const { id } = await begin();
    await reserve(world, id, 100, 50);
    expect(await turn(id)).toMatchObject({
      reserved: 150,
      estimated_input: 100,
      context_ids: [(await turn(id))?.trigger_uuid],
    });
    expect(await spent(room)).toEqual({ today: 150, todayHere: 150, turnsInMinute: 1 });
    expect(await spent(other)).toEqual({ today: 150, todayHere: 0, turnsInMinute: 1 });
    await finish(id, { usage: { input_tokens: 90, output_tokens: 10 } });
    expect(await turn(id)).toMatchObject({ reserved: 0 });
    expect(await spent(room)).toEqual({ today: 100, todayHere: 100, turnsInMinute: 1 });
    const later = await begin(other);
    await reserve(world, later.id, 1, 2);
    await finish(later.id, { status: "failed", usage: null });
    expect(await spent(other)).toEqual({ today: 100, todayHere: 0, turnsInMinute: 2 });
    expect(await spent(room, START + 60_001)).toMatchObject({ today: 100, turnsInMinute: 0 });
    expect(await spent(room, START + DAY)).toEqual({ today: 0, todayHere: 0, turnsInMinute: 0 });
  });

  check("what an abandoned turn had reserved is free when it is taken over", async (world) => {
    const { agent, room, begin } = await desk(world);
    const { id } = await begin();
    await reserve(world, id, 100, 50);
    await world.store.write((tx) => tx.adoptTurn(id, "there", 10_000));
    const spent = await world.store.read((tx) => tx.spending(agent.id, room.id, START));
    expect(spent).toMatchObject({ today: 0, todayHere: 0 });
  });

  check("usage is told to the owner by agent, conversation and day", async (world) => {
    const { alice, bob, agent, room, begin, finish } = await desk(world);
    const usage = { input_tokens: 10, output_tokens: 1 };
    for (const [day, status] of [
      [0, "complete"],
      [0, "failed"],
      [2, "stopped"],
    ] as const) {
      const { id } = await begin(room, START + day * DAY);
      await finish(id, { status, usage, at: START + day * DAY });
    }
    const told = (owner: AccountRecord, since: number | null, until: number | null) =>
      world.store.read((tx) => tx.usage(owner.id, since, until));
    const row = (day: string, turnCount: number, failures: number) => ({
      agent: agent.username,
      conversation_id: room.uuid,
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

  check("a turn that runs past midnight counts for the day on which it began", async (world) => {
    const { alice, agent, room, begin, finish } = await desk(world);
    const { id } = await begin(room, START + DAY - 1);
    await reserve(world, id, 100, 100);
    await finish(id, { usage: { input_tokens: 7, output_tokens: 7 }, at: START + DAY + 5 });
    const spent = (now: number) => world.store.read((tx) => tx.spending(agent.id, room.id, now));
    expect(await spent(START + DAY - 1)).toMatchObject({ today: 14 });
    expect(await spent(START + DAY)).toMatchObject({ today: 0 });
    const days = await world.store.read((tx) => tx.usage(alice.id, null, null));
    expect(days.map(({ day }) => day)).toEqual(["2026-11-15"]);
  });
}

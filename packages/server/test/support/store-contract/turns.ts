import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { agentFixture, finishTurn, placeholder } from "./agent-fixture.ts";
import { at, type Check, inSequence, recordOf, START, times } from "./fixture.ts";

export function turns(check: Check) {
  check("a queued turn waits with its trigger", async (fixture) => {
    const { alice, agent, chat, queue, turn, open } = await agentFixture(fixture);
    const asked = await fixture.send(chat, alice, "question");
    await queue(asked);
    const [waiting] = (await open()) as [TurnRecord];
    expect(waiting).toMatchObject({
      agent,
      conversation_id: chat.id,
      conversation_uuid: chat.uuid,
      trigger_uuid: asked.id,
      trigger_seq: asked.seq,
      trigger_sender_id: alice.id,
      trigger_deleted: false,
      open_ended: true,
      folded: false,
      refusal: null,
      status: "waiting",
      message_id: null,
      message_uuid: null,
      message_seq: null,
      tries: 0,
      usage: null,
    });
    expect(await turn(waiting.id)).toEqual(waiting);
    expect(await turn(waiting.id + 1)).toBeNull();
    await fixture.remove(asked);
    expect(await turn(waiting.id)).toMatchObject({ trigger_deleted: true });
  });

  check("turns queue up, and beyond the limit the last takes the new trigger", async (fixture) => {
    const { alice, chat, queue, claim, open } = await agentFixture(fixture);
    const asked = await inSequence(times(9), (n) => fixture.send(chat, alice, `${n}`));
    const most_waiting = 2;
    const waiting = async () =>
      (await open()).map(({ trigger_uuid, status, folded }) => [
        asked.findIndex(({ id }) => id === trigger_uuid),
        status,
        folded,
      ]);
    for (const n of [0, 1, 2]) await queue(at(asked, n), { most_waiting });
    expect(await waiting()).toEqual([
      [0, "waiting", false],
      [2, "waiting", true],
    ]);
    await claim();
    for (const n of [3, 4, 5]) await queue(at(asked, n), { most_waiting: 3 });
    expect(await waiting()).toEqual([
      [0, "running", false],
      [2, "waiting", true],
      [3, "waiting", false],
      [5, "waiting", true],
    ]);
    // Neither a repetition nor a refusal takes the place of a question, nor a question theirs.
    await queue(at(asked, 6), { most_waiting, open_ended: false });
    await queue(at(asked, 7), { most_waiting, refusal: "No." });
    await queue(at(asked, 8), { most_waiting });
    await queue(at(asked, 8), { most_waiting, refusal: "No." });
    expect(await waiting()).toEqual([
      [0, "running", false],
      [2, "waiting", true],
      [3, "waiting", false],
      [8, "waiting", true],
      [6, "waiting", false],
      [8, "waiting", true],
    ]);
  });

  check("turns of other agents and conversations do not count for the limit", async (fixture) => {
    const { alice, agent, chat, queue, open } = await agentFixture(fixture);
    const other = await fixture.group(alice, agent);
    const elsewhere = await fixture.send(other, alice, "elsewhere");
    await queue(elsewhere, { conversation_id: other.id });
    await queue(await fixture.send(chat, alice, "here"), { most_waiting: 1 });
    expect(await open()).toHaveLength(1);
    expect(await fixture.store.read((tx) => tx.openTurns(other.id))).toMatchObject([
      { trigger_uuid: elsewhere.id, folded: false },
    ]);
  });

  check(
    "turns are claimed one at a time for each agent and conversation, oldest first",
    async (fixture) => {
      const { alice, agent, chat, queue, claim, finish } = await agentFixture(fixture);
      const other = await fixture.group(alice, agent);
      const asked = [
        await fixture.send(chat, alice, "1"),
        await fixture.send(chat, alice, "2"),
        await fixture.send(other, alice, "3"),
      ];
      const [one, two, three] = asked as [Message, Message, Message];
      await queue(one, { open_ended: false });
      await queue(two, { open_ended: false });
      await queue(three, { open_ended: false, conversation_id: other.id });
      const claimed = await claim();
      const triggers = (list: TurnRecord[]) => list.map(({ trigger_uuid }) => trigger_uuid);
      expect(triggers(claimed)).toEqual([one.id, three.id]);
      expect(claimed.map(({ status }) => status)).toEqual(["running", "running"]);
      expect(await claim()).toEqual([]);
      const [first] = claimed as [TurnRecord];
      await fixture.store.write(async (tx) => {
        await placeholder(tx, chat, first);
      });
      await finish(first.id);
      expect(triggers(await claim())).toEqual([two.id]);
    },
  );

  check("no more turns are claimed than asked for", async (fixture) => {
    const { alice, agent, queue, claim } = await agentFixture(fixture);
    for (const _ of times(5)) {
      const chat = await fixture.group(alice, agent);
      await queue(await fixture.send(chat, alice, "question"), { conversation_id: chat.id });
    }
    expect(await claim("here", 2)).toHaveLength(2);
    expect(await claim("here", 2)).toHaveLength(2);
    expect(await claim("here", 2)).toHaveLength(1);
  });

  check("concurrent claims of several nodes never return the same turn", async (fixture) => {
    const { alice, agent, queue } = await agentFixture(fixture);
    for (const _ of times(12)) {
      const chat = await fixture.group(alice, agent);
      await queue(await fixture.send(chat, alice, "question"), { conversation_id: chat.id });
    }
    const takeAll = async (node: string): Promise<TurnRecord[]> => {
      const { turns, more } = await fixture.store.write((tx) => tx.claimTurns(node, 10_000, 3));
      return more ? [...turns, ...(await takeAll(node))] : turns;
    };
    const taken = (await Promise.all(times(8).map((n) => takeAll(`node ${n}`)))).flat();
    expect(taken).toHaveLength(12);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(12);
  });

  check("waiting turns can be dropped, running ones cannot", async (fixture) => {
    const { alice, chat, begin, queue, open } = await agentFixture(fixture);
    const { id } = await begin();
    await queue(await fixture.send(chat, alice, "more"));
    await fixture.store.write(async (tx) => {
      const turns = await tx.openTurns(chat.id);
      await tx.dropTurns(turns.map((turn) => turn.id));
    });
    expect((await open()).map((turn) => turn.id)).toEqual([id]);
  });

  check("a turn's message is unread, and finalized with the turn", async (fixture) => {
    const { alice, bob, chat, begin, finish, turn } = await agentFixture(fixture);
    const { id, message } = await begin();
    expect(message).toMatchObject({ content: "", finalized_at: null, seq: 2 });
    expect((await fixture.view(chat, bob)).unread).toEqual({ human: 1, agent: 1, mentions: 0 });
    const record = await fixture.store.read((tx) => recordOf(tx, message));
    expect(record.finalized).toBe(false);
    const running = await turn(id);
    expect(running).toMatchObject({
      status: "running",
      message_id: record.id,
      message_uuid: message.id,
      message_seq: message.seq,
      model: "m",
      started_at: START,
    });
    expect(await fixture.store.read((tx) => tx.turnOfMessage(record))).toEqual(running);
    const error = { code: "timeout", message: "Too late." } as const;
    const usage = { input_tokens: 3, output_tokens: 4 };
    const version = await finish(id, {
      status: "failed",
      content: "Hi @bob",
      mentions: ["bob"],
      error,
      usage,
    });
    expect(version).toBe(3);
    const [final] = await fixture.store.read((tx) => tx.messageViews([message.id], alice.id));
    expect(final).toEqual({
      ...message,
      version: 3,
      content: "Hi @bob",
      mentions: ["bob"],
      finalized_at: new Date(START + 9).toISOString(),
      turn: { ...message.turn, status: "failed", error, usage } as Message["turn"],
    });
    expect(await turn(id)).toMatchObject({
      status: "failed",
      error,
      usage,
      finished_at: START + 9,
    });
    expect((await fixture.view(chat, bob)).unread).toEqual({ human: 1, agent: 1, mentions: 1 });
    expect(await fixture.find(bob, ["hi"])).toEqual(["Hi @bob"]);
  });

  check("the streamed text of a running turn is shown", async (fixture) => {
    const { bob, chat, begin, append, finish, turn } = await agentFixture(fixture);
    const { id, message } = await begin();
    expect(await append(id, "Grü", 4, true)).toBe(true);
    expect(await append(id, "ße, 👍", 13)).toBe(true);
    expect(await append(id, "!", 14)).toBe(true);
    const { message_id: row } = (await turn(id)) as TurnRecord;
    expect(await fixture.store.read((tx) => tx.streamed(row as number))).toBe("Grüße, 👍!");
    expect(await turn(id)).toMatchObject({ first_token_at: START + 5 });
    expect(await fixture.texts(chat, bob)).toEqual(["question", "Grüße, 👍!"]);
    expect((await fixture.view(chat, bob)).last_message).toMatchObject({
      id: message.id,
      content: "Grüße, 👍!",
      finalized_at: null,
    });
    expect((await fixture.view(chat, bob)).seq).toBe(2);
    await finish(id, { content: "Grüße, 👍!" });
    expect(await fixture.texts(chat, bob)).toEqual(["question", "Grüße, 👍!"]);
  });

  check("nothing is appended to a finished turn", async (fixture) => {
    const { bob, chat, begin, append, finish } = await agentFixture(fixture);
    const { id } = await begin();
    await append(id, "Hello", 5, true);
    await finish(id, { status: "stopped", content: "Hello" });
    expect(await append(id, " there", 11)).toBe(false);
    expect(await fixture.texts(chat, bob)).toEqual(["question", "Hello"]);
  });

  check("the latest attempt is stored until the turn ends", async (fixture) => {
    const { begin, turn, finish } = await agentFixture(fixture);
    const { id } = await begin();
    const attempt = (tries: number, input_tokens: number | null) =>
      fixture.store.note((tx) => tx.setAttempt(id, { tries, input_tokens }));
    await attempt(2, 30);
    expect(await turn(id)).toMatchObject({ tries: 2, charged_input: 30, usage: null });
    await attempt(3, null);
    expect(await turn(id)).toMatchObject({ tries: 3, charged_input: null });
    const usage = { input_tokens: 7, output_tokens: 8 };
    await finish(id, { usage });
    await attempt(4, 40);
    expect(await turn(id)).toMatchObject({ tries: 3, usage });
  });

  check("a turn of a node that is gone can be taken over", async (fixture) => {
    const { begin, turn, finish, append } = await agentFixture(fixture);
    const { store } = fixture;
    const { id } = await begin();
    const abandoned = async (node: string) =>
      (await store.write((tx) => tx.abandonedTurns(node))).map((each) => each.id);
    expect(await abandoned("here")).toEqual([]);
    await store.write((tx) => tx.renewLeases("here", [id], 20_000));
    expect(await abandoned("here")).toEqual([]);
    await store.write((tx) => tx.renewLeases("here", [id], 0));
    await store.write((tx) => tx.renewLeases("here", [], 20_000));
    await store.write((tx) => tx.renewLeases("there", [id], 20_000));
    expect(await abandoned("there")).toEqual([id]);
    expect(await abandoned("here")).toEqual([id]);
    await store.write(async (tx) => {
      const reservation = {
        spent_tokens: 0,
        input_tokens: 5,
        output_tokens: 5,
        context_ids: [],
        by_operator: false,
      };
      await tx.reserveTurn((await tx.turn(id)) as TurnRecord, reservation);
      await tx.adoptTurn(id, "there", 40_000);
    });
    expect(await abandoned("there")).toEqual([]);
    expect(await turn(id)).toMatchObject({ status: "running", node: "there", reserved: 0 });
    expect(await append(id, "too late", 8, true)).toBe(false);
    expect(await append(id, "in time", 7, true, "there")).toBe(true);
    await finish(id);
    expect(await abandoned("elsewhere")).toEqual([]);
  });

  check(
    "an agent's context has the finalized messages that its owner can see, newest first",
    async (fixture) => {
      const { alice, bob, agent, chat, begin } = await agentFixture(fixture);
      const sent = await inSequence(times(6), (n) => fixture.send(chat, bob, `${n}`));
      await fixture.remove(at(sent, 1));
      await fixture.hide(alice, at(sent, 2));
      await fixture.hide(bob, at(sent, 3));
      await begin();
      const context = async (upTo: number, limit: number) => {
        const answers = { agentId: agent.id, upTo: 100, toBefore: 0 };
        const query = { conversationId: chat.id, viewerId: alice.id, upTo, answers, limit };
        return (await fixture.store.read((tx) => tx.contextMessages(query))).map(
          (one) => one.content,
        );
      };
      expect(await context(100, 100)).toEqual(["question", "5", "4", "3", "0"]);
      expect(await context(100, 2)).toEqual(["question", "5"]);
      expect(await context(at(sent, 4).seq, 2)).toEqual(["4", "3"]);
    },
  );

  check("an agent's context has its later answers to earlier messages", async (fixture) => {
    const { alice, bob, agent, chat, queue, claim } = await agentFixture(fixture);
    const asked = await inSequence(times(3), (n) => fixture.send(chat, alice, `question ${n}`));
    for (const one of asked) await queue(one);
    for (const n of times(3)) {
      const [turn] = (await claim()) as [TurnRecord];
      await fixture.store.write(async (tx) => {
        await placeholder(tx, chat, turn);
        await finishTurn(tx, turn.id, { content: `answer ${n}` });
      });
    }
    await fixture.send(chat, bob, "talk");
    const context = async (trigger: Message, upTo = 100) => {
      const answers = { agentId: agent.id, upTo, toBefore: trigger.seq };
      const query = { conversationId: chat.id, viewerId: alice.id, answers, limit: 100 };
      const found = await fixture.store.read((tx) =>
        tx.contextMessages({ ...query, upTo: trigger.seq }),
      );
      return found.map(({ content }) => content);
    };
    expect(await context(at(asked, 0))).toEqual(["question 0"]);
    expect(await context(at(asked, 1))).toEqual(["answer 0", "question 1", "question 0"]);
    expect(await context(at(asked, 2))).toEqual([
      "answer 1",
      "answer 0",
      "question 2",
      "question 1",
      "question 0",
    ]);
    expect(await context(at(asked, 2), at(asked, 2).seq + 1)).toEqual([
      "answer 0",
      "question 2",
      "question 1",
      "question 0",
    ]);
  });
}

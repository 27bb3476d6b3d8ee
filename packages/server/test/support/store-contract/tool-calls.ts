import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import { finishErasure } from "../../../src/domain/erasures.ts";
import type { ElicitationAnswer as Answer } from "../../../src/store/elicitations.ts";
import type { NewToolCall, ToolCallRecord } from "../../../src/store/tool-calls.ts";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { agentFixture } from "./agent-fixture.ts";
import { type Check, type Fixture, recordOf, START } from "./fixture.ts";

export function toolCalls(check: Check) {
  async function talk(fixture: Fixture) {
    const agents = await agentFixture(fixture);
    const { alice, agent, chat, begin } = agents;
    const { id: turnId, message } = await begin();
    const insert = (position: number, rest: Partial<NewToolCall> = {}) =>
      fixture.store.write(async (tx) => {
        const { id: message_id } = await recordOf(tx, message);
        const uuid = Bun.randomUUIDv7();
        const seq = await tx.insertToolCall({
          uuid,
          message_id,
          conversation_id: chat.id,
          agent_id: agent.id,
          owner_id: alice.id,
          round: 0,
          position,
          text_bytes: 0,
          model_id: `call_${position}`,
          provider_fields: { signature: "Ω" },
          server_id: null,
          server: "parley",
          tool: "current_time",
          title: "Current time",
          fingerprint: "as it was",
          arguments: { zone: "Ω" },
          status: "running",
          error: null,
          created_at: START,
          started_at: START,
          finished_at: null,
          expires_at: null,
          ...rest,
        });
        return { uuid, seq };
      });
    const call = async (uuid: string) =>
      (await fixture.store.read((tx) => tx.toolCall(uuid))) as ToolCallRecord;
    const view = async () => {
      const [shown] = await fixture.store.read((tx) => tx.messageViews([message.id], -1));
      return shown as Message;
    };
    return { ...agents, turnId, message, insert, call, view };
  }

  check("a message lists its calls in order, and each change counts", async (fixture) => {
    const { message, insert, view, call, agent, alice, chat } = await talk(fixture);
    const first = await insert(0);
    const expires_at = Date.now() + 3_600_000;
    const second = await insert(1, { status: "pending", expires_at, started_at: null });
    expect([first.seq, second.seq]).toEqual([message.seq + 1, message.seq + 2]);
    const shown = { server: "parley", tool: "current_time", title: "Current time" };
    expect(await view()).toMatchObject({
      version: message.seq + 2,
      tool_calls: [
        { id: first.uuid, ...shown, status: "running", decided_by: null },
        { id: second.uuid, ...shown, status: "pending", decided_by: null },
      ],
    });
    expect(await call(first.uuid)).toMatchObject({
      agent: { id: agent.id },
      owner_id: alice.id,
      message_uuid: message.id,
      conversation_id: chat.id,
      provider_fields: { signature: "Ω" },
      fingerprint: "as it was",
      arguments: { zone: "Ω" },
      result: null,
    });
    const seq = await fixture.store.write(async (tx) => {
      const stored = (await tx.toolCall(second.uuid)) as ToolCallRecord;
      return tx.updateToolCall(stored, { status: "rejected", decided_by: "alice", note: "no" });
    });
    expect(seq).toBe(message.seq + 3);
    expect((await view()).tool_calls[1]).toMatchObject({
      status: "rejected",
      decided_by: "alice",
    });
    expect(await call(second.uuid)).toMatchObject({ note: "no", expires_at });
  });

  check("pending calls are found by owner and by the end of their time", async (fixture) => {
    const { insert, alice, bob, finish, turnId } = await talk(fixture);
    await insert(0);
    const pending = { status: "pending", started_at: null } as const;
    const { uuid: late } = await insert(1, { ...pending, expires_at: START + 20, created_at: 2 });
    const { uuid: soon } = await insert(2, { ...pending, expires_at: START + 10, created_at: 1 });
    const { store } = fixture;
    const idsOf = (calls: readonly ToolCallRecord[]) => calls.map(({ uuid }) => uuid);
    const waiting = async (id: number, now: number) =>
      idsOf(await store.read((tx) => tx.pendingToolCalls(id, now)));
    // The message is not complete: it has no card for them yet.
    expect(await waiting(alice.id, START)).toEqual([]);
    await finish(turnId);
    expect(await waiting(alice.id, START)).toEqual([soon, late]);
    expect(await waiting(alice.id, START + 10)).toEqual([late]);
    expect(await waiting(bob.id, START)).toEqual([]);
    const expired = async (now: number, limit: number) =>
      idsOf(await store.read((tx) => tx.expiredToolCalls(now, limit)));
    expect(await expired(START + 10, 10)).toEqual([soon]);
    expect(await expired(START + 20, 10)).toEqual([soon, late]);
    expect(await expired(START + 20, 1)).toEqual([soon]);
  });

  check("a message shows a call as expired once its time is over", async (fixture) => {
    const { insert, view } = await talk(fixture);
    const pending = { status: "pending", started_at: null } as const;
    await insert(0, { ...pending, expires_at: Date.now() - 1 });
    await insert(1, { ...pending, expires_at: Date.now() + 3_600_000 });
    const { tool_calls } = await view();
    expect(tool_calls.map(({ status }) => status)).toEqual(["expired", "pending"]);
    expect(tool_calls[0]).not.toHaveProperty("expires_at");
  });

  check("a call that was started says so, and counts nothing", async (fixture) => {
    const { insert, call, view } = await talk(fixture);
    const { uuid, seq } = await insert(0, { started_at: null });
    await fixture.store.write(async (tx) =>
      tx.startToolCall((await tx.toolCall(uuid)) as ToolCallRecord, START + 3),
    );
    expect((await call(uuid)).started_at).toBe(START + 3);
    expect((await view()).version).toBe(seq);
  });

  check("deleting a message deletes its calls", async (fixture) => {
    const { insert, message, finish, turnId } = await talk(fixture);
    const { uuid } = await insert(0);
    await finish(turnId);
    await fixture.store.write(async (tx) =>
      tx.deleteMessages([await recordOf(tx, message)], START),
    );
    expect(await fixture.store.read((tx) => tx.toolCall(uuid))).toBeNull();
  });

  check("a turn continues a message, and remembers its rounds", async (fixture) => {
    const { queue, claim, finish, turnId, message, turn, alice, chat } = await talk(fixture);
    await finish(turnId);
    const trigger = await fixture.send(chat, alice, "more");
    await queue(trigger, { continues_uuid: message.id, open_ended: false });
    const [next] = (await claim()) as [TurnRecord];
    expect(next).toMatchObject({
      continues_uuid: message.id,
      continues_seq: message.seq,
      rounds: [],
    });
    const rounds = [{ duration_ms: 12, usage: { input_tokens: 1, output_tokens: 2 } }];
    await fixture.store.write((tx) => tx.setRounds(next.id, rounds));
    expect((await turn(next.id))?.rounds).toEqual(rounds);
  });

  check(
    "an erasure deletes what only the owner saw of calls, whenever they ended",
    async (fixture) => {
      const { insert, call, alice, bob, agent, chat, message, finish, turnId } =
        await talk(fixture);
      const { store } = fixture;
      const end = (uuid: string) =>
        store.write(async (tx) => {
          const stored = (await tx.toolCall(uuid)) as ToolCallRecord;
          const seen = { result: "secret", error: "secret", note: "secret" };
          await tx.updateToolCall(stored, { status: "failed", finished_at: START, ...seen });
        });
      const [before, after] = [await insert(0), await insert(1)];
      const another = await insert(2, { owner_id: bob.id });
      await end(before.uuid);
      await end(another.uuid);
      const asked = { uuid: Bun.randomUUIDv7(), call_uuid: after.uuid, conversation_id: chat.id };
      await store.write(async (tx) => {
        await tx.toolCall(after.uuid);
        const rest = { owner_id: alice.id, message_uuid: message.id, schema: {} };
        await tx.insertElicitation({ ...asked, ...rest });
      });
      await finish(turnId);
      await store.write((tx) => tx.eraseAccount(alice, { messages: false, at: START }));
      // It was running meanwhile.
      await end(after.uuid);
      await finishErasure(store, { account: alice, messages: false });
      const erased = { result: null, error: null, note: null, provider_fields: null };
      for (const { uuid } of [before, after]) {
        expect(await call(uuid)).toMatchObject({ ...erased, agent_id: agent.id, status: "failed" });
      }
      expect(await call(another.uuid)).toMatchObject({ result: "secret", note: "secret" });
      expect(await store.read((tx) => tx.elicitation(asked.uuid))).toBeNull();
    },
  );

  /** Calls of which tools ask their owner. */
  async function asking(fixture: Fixture) {
    const { insert, alice, chat, ...rest } = await talk(fixture);
    const { store } = fixture;
    const schema = { properties: { name: { title: "Ω" } } };
    const ask = async (position: number, message_uuid: string) => {
      const { uuid: call_uuid } = await insert(position);
      const owned = { conversation_id: chat.id, owner_id: alice.id };
      const asked = { uuid: Bun.randomUUIDv7(), call_uuid, ...owned, schema };
      await store.write(async (tx) => {
        await tx.toolCall(call_uuid);
        await tx.insertElicitation({ ...asked, message_uuid });
      });
      return asked;
    };
    const answer = ({ uuid, call_uuid }: { uuid: string; call_uuid: string }, given: Answer) =>
      store.write(async (tx) => {
        await tx.toolCall(call_uuid);
        await tx.elicitation(uuid);
        await tx.answerElicitation(uuid, given);
      });
    const open = (owner = alice) =>
      store.read(async (tx) => {
        const found = await tx.openElicitations(owner.id);
        return found.map(({ message_uuid }) => message_uuid);
      });
    const stored = ({ uuid }: { uuid: string }) => store.read((tx) => tx.elicitation(uuid));
    return { ...rest, alice, chat, ask, answer, open, stored };
  }

  check("what a tool asked is answered once, and deleted with its call", async (fixture) => {
    const { ask, answer, open, stored, agent, message } = await asking(fixture);
    const asked = await ask(0, message.id);
    expect([await open(), await open(agent)]).toEqual([[message.id], []]);
    expect(await stored(asked)).toEqual({ ...asked, answer: null });
    const given = { action: "accept", content: { name: "Ω" } } as const;
    await answer(asked, given);
    expect(await open()).toEqual([]);
    await answer(asked, { action: "decline", content: {} });
    expect(await stored(asked)).toEqual({ ...asked, answer: given });
    await fixture.store.write(async (tx) => {
      await tx.toolCall(asked.call_uuid);
      await tx.deleteElicitations(asked.call_uuid);
    });
    expect(await stored(asked)).toBeNull();
  });

  check(
    "what was asked in deleted messages is cancelled, unless it was answered",
    async (fixture) => {
      const { ask, answer, open, stored, alice, chat } = await asking(fixture);
      const forms = [
        await fixture.send(chat, alice, "one"),
        await fixture.send(chat, alice, "two"),
        await fixture.send(chat, alice, "three"),
      ] as const;
      const cancel = (...messages: Message[]) =>
        fixture.store.write(async (tx) => {
          for (const each of messages) await recordOf(tx, each);
          return tx.cancelElicitations(messages.map(({ id }) => id));
        });
      const first = await ask(0, forms[0].id);
      const again = await ask(1, forms[0].id);
      const answered = await ask(2, forms[1].id);
      const kept = await ask(3, forms[2].id);
      await answer(answered, { action: "decline", content: {} });
      expect(await cancel()).toEqual([]);
      const cancelled = await cancel(forms[0], forms[1]);
      expect(cancelled.toSorted()).toEqual([first.uuid, again.uuid].toSorted());
      expect([await stored(first), await stored(again)]).toEqual([null, null]);
      expect((await stored(answered))?.answer?.action).toBe("decline");
      expect((await stored(kept))?.answer).toBeNull();
      expect(await open()).toEqual([forms[2].id]);
      expect(await cancel(forms[0], forms[1])).toEqual([]);
    },
  );
}

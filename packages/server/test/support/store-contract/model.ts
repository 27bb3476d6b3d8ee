import { expect } from "bun:test";
import type { Message } from "@parley/protocol";
import fc from "fast-check";
import type { AccountRecord } from "../../../src/store/accounts.ts";
import { isNonEmpty } from "../../../src/store/non-empty.ts";
import type { ReadTx, WriteTx } from "../../../src/store/store.ts";
import type { TurnRecord } from "../../../src/store/turns.ts";
import { finishTurn, placeholder } from "./agent-fixture.ts";
import {
  at,
  type Chat,
  conversationOf,
  inSequence,
  newAccount,
  newAgent,
  newGroup,
  recordOf,
  recordsOf,
  remove,
  START,
  send,
  wholeHistory,
} from "./fixture.ts";

let last = 0;
const unique = () => ++last;

type Step =
  | { do: "send"; who: number; mentions: number[] }
  | { do: "import"; who: number; mentions: number[]; count: number }
  | { do: "read"; who: number; part: number }
  | { do: "delete"; which: number[] }
  | { do: "hide"; who: number; which: number[] }
  | { do: "edit"; which: number; mentions: number[] }
  | { do: "react"; who: number; which: number }
  | { do: "use"; who: number; which: number }
  | { do: "answer"; mentions: number[] }
  | { do: "join or leave"; who: number }
  | { do: "follow"; limit: number };

const who = fc.nat(4);
const which = fc.nat(11);
const several = fc.array(which, { minLength: 1, maxLength: 4 });
const mentions = fc.array(who, { maxLength: 2 });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant("send"), who, mentions }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("import"),
      who,
      mentions,
      count: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("read"), who, part: fc.nat(10) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("delete"), which: several }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("hide"), who, which: several }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("edit"), which, mentions }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("react"), who, which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("use"), who, which }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("answer"), mentions }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("join or leave"), who }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("follow"), limit: fc.integer({ min: 1, max: 3 }) }),
  },
) as fc.Arbitrary<Step>;
export const randomSteps = fc.array(step, { maxLength: 40, size: "max" });

interface ModelMessage {
  id: string;
  seq: number;
  sender: AccountRecord;
  mentions: string[];
  deleted: boolean;
  readonly imported: boolean;
  readonly hiddenFrom: Set<AccountRecord>;
}

/**
 * Applies random steps to a group, and to a simple model of it: the messages, who has hidden them, how
 * far everybody has read. Everything happens in one unit of work, which makes it fast.
 */
export async function newModel(tx: WriteTx) {
  const prefix = `model${unique()}_`;
  const humans = await inSequence(["a", "b", "c", "d"], (name) =>
    newAccount(tx, { username: prefix + name }),
  );
  const [reader] = humans as [AccountRecord];
  const agent = await newAgent(tx, reader, "claude");
  const everybody = humans.toSpliced(2, 0, agent);
  const chat = await newGroup(tx, everybody.slice(0, 3));
  const places = new Map(everybody.slice(0, 3).map((account) => [account, 0]));
  const messages: ModelMessage[] = [];
  /** Counter values of the changes of the group. */
  const changed: number[] = [];
  const client = follower(chat, reader);
  let counter = 0;
  let running: { turn: number; message: ModelMessage } | null = null;

  const present = (n: number) => at([...places.keys()], n);
  const names = (chosen: number[]) => [...new Set(chosen.map((n) => present(n).username))];
  const alive = () => messages.filter(({ deleted }) => !deleted);
  const final = () => alive().filter((message) => message !== running?.message);
  const chosenOf = (list: ModelMessage[], chosen: number[]) =>
    list.length === 0 ? [] : [...new Set(chosen.map((n) => at(list, n)))];
  const counted = (value: number) => expect(value).toBe(++counter);
  const addMessage = (
    { id, seq, mentions: named, imported }: Message,
    sender: AccountRecord,
  ): ModelMessage => {
    counted(seq);
    if (!imported) places.set(sender, seq);
    const message: ModelMessage = {
      id,
      seq,
      sender,
      mentions: named,
      deleted: false,
      imported: imported === true,
      hiddenFrom: new Set(),
    };
    messages.push(message);
    return message;
  };

  async function beginAnswer(): Promise<void> {
    const trigger = messages.at(-1);
    if (!trigger || !places.has(agent)) return;
    const asked = { agent_id: agent.id, conversation_id: chat.id, trigger_uuid: trigger.id };
    const fresh = { open_ended: true, refusal: null, most_waiting: 16, at: START };
    await tx.queueTurn({ ...asked, ...fresh });
    const { turns: claimed } = await tx.claimTurns("here", 10_000, 100);
    const turn = claimed.find(({ conversation_id }) => conversation_id === chat.id) as TurnRecord;
    running = { turn: turn.id, message: addMessage(await placeholder(tx, chat, turn), agent) };
  }

  async function endAnswer(named: string[]): Promise<void> {
    if (!running) return;
    counted(await finishTurn(tx, running.turn, { mentions: named }));
    running.message.mentions = named;
    running = null;
  }

  const steps: { [Do in Step["do"]]: (step: Extract<Step, { do: Do }>) => Promise<void> } = {
    send: async ({ who: n, mentions: chosen }) => {
      const sender = present(n);
      const options = { mentions: names(chosen) };
      addMessage(await send(tx, chat, sender, `${messages.length}`, options), sender);
    },
    import: async ({ who: n, mentions: chosen, count }) => {
      const sender = present(n);
      const past = Array.from({ length: count }, () => ({
        sender,
        content: "imported",
        client_msg_id: `${unique()}`,
        mentions: names(chosen),
        at: START,
      }));
      const conversation = await conversationOf(tx, chat);
      if (!isNonEmpty(past)) return;
      for (const { inserted } of await tx.importMessages(conversation, past)) {
        addMessage(inserted as Message, sender);
      }
    },
    read: async ({ who: n, part }) => {
      const account = present(n);
      const seq = Math.round((counter * part) / 10);
      const before = places.get(account) as number;
      expect((await tx.markRead(chat.id, account.id, seq)) !== null).toBe(seq > before);
      places.set(account, Math.max(seq, before));
    },
    delete: async ({ which: chosen }) => {
      const gone = chosenOf(final(), chosen);
      if (gone.length === 0) return;
      counted(await remove(tx, gone));
      for (const message of gone) message.deleted = true;
    },
    hide: async ({ who: n, which: chosen }) => {
      const hidden = chosenOf(alive(), chosen);
      await tx.hideMessages(await recordsOf(tx, hidden), present(n).id);
      for (const message of hidden) message.hiddenFrom.add(present(n));
    },
    edit: async ({ which: n, mentions: chosen }) => {
      const [message] = chosenOf(final(), [n]);
      if (!message) return;
      const record = await recordOf(tx, message);
      counted(await tx.editMessage(record, `edited ${counter}`, names(chosen), START));
      message.mentions = names(chosen);
    },
    react: async ({ who: n, which: m }) => {
      const [message] = chosenOf(alive(), [m]);
      if (!message) return;
      const reactor = present(n);
      const record = await recordOf(tx, message);
      const there = await tx.reaction(record, reactor, "👍");
      if (there) counted(await tx.removeReaction(record, reactor.id, "👍"));
      else counted(await tx.addReaction(record, { reactor, emoji: "👍", at: START }));
    },
    use: async ({ who: n, which: m }) => {
      const [message] = chosenOf(alive(), [m]);
      if (!message) return;
      const use = { token: "refresh", by: present(n), at: START };
      const version = await tx.useComponent(await recordOf(tx, message), use);
      if (message === running?.message) expect(version).toBeNull();
      else counted(version ?? 0);
    },
    answer: ({ mentions: chosen }) => (running ? endAnswer(names(chosen)) : beginAnswer()),
    "join or leave": async ({ who: n }) => {
      const account = at(everybody, n);
      if (account === reader) return;
      if (account === agent) await endAnswer([]);
      if (places.has(account)) await tx.deleteMembers(chat.id, [account.id]);
      else await tx.insertMembers(chat.id, [account.id], START);
      if (!places.delete(account)) places.set(account, counter);
      const changes = [{ kind: "added", subjects: [account] }] as const;
      counted(await tx.changeGroup(chat.id, { actor: reader, changes, at: START }));
      changed.push(counter);
    },
    follow: ({ limit }) => client.follow(tx, limit),
  };

  return {
    take: (one: Step) => steps[one.do](one as never),
    async checkFollower(limit: number) {
      await endAnswer([]);
      await client.follow(tx, limit);
      await client.check(tx);
      expect(client.changes).toEqual(changed);
    },
    /** Compares the unread counts of the n-th member with a count of the messages. */
    checkUnreadCount: (n: number) => checkUnreadCount(present(n)),
    checkUnreadCounts: () => inSequence([...places.keys()], checkUnreadCount),
  };

  async function checkUnreadCount(account: AccountRecord): Promise<void> {
    const place = places.get(account) ?? 0;
    const unread = alive().filter(
      ({ seq, hiddenFrom, imported }) => !imported && seq > place && !hiddenFrom.has(account),
    );
    const byAgents = unread.filter(({ sender }) => sender.kind === "agent").length;
    const mentioned = unread.filter((message) => message.mentions.includes(account.username));
    const view = await tx.conversationView(chat.id, account.id);
    const { seq, unread_count, unread: figures, last_read_seq } = view;
    expect({ seq, unread_count, figures, last_read_seq }).toEqual({
      seq: counter,
      unread_count: unread.length,
      figures: { human: unread.length - byAgents, agent: byAgents, mentions: mentioned.length },
      last_read_seq: place,
    });
    expect(await tx.unreadCount(chat.id, account.id)).toBe(unread.length);
  }
}

/** A client that knows a conversation only from `updates`. */
export function follower(chat: Chat, viewer: AccountRecord) {
  const known = new Map<string, Message>();
  const changes: number[] = [];
  let since = 0;
  return {
    changes,
    async follow(tx: ReadTx, limit: number): Promise<void> {
      for (let more = true; more; ) {
        const query = { conversationId: chat.id, viewerId: viewer.id, since, limit };
        const page = await tx.updates(query);
        for (const message of page.messages) known.set(message.id, message);
        for (const id of page.deleted_ids) known.delete(id);
        changes.push(...page.changes.map(({ seq }) => seq));
        if (page.has_more) expect(page.seq).toBeGreaterThan(since);
        since = page.seq;
        more = page.has_more;
      }
    },
    async check(tx: ReadTx): Promise<void> {
      const mine = [...known.values()].toSorted((one, other) => one.seq - other.seq);
      expect(mine).toEqual(await wholeHistory(tx, chat, viewer));
      expect(since).toBe((await conversationOf(tx, chat)).seq);
    },
  };
}

import type { EventParams, SharedConversation } from "@parley/protocol";
import { type Change, conversationShared, counted, durable } from "../../src/changes/change.ts";
import type { Counter, EventLog } from "../../src/realtime/bus.ts";
import { human } from "./broker.ts";

interface Conversation {
  seq: number;
  members: Set<string>;
  left: Map<string, number>;
  changedAt: number;
  events: Map<number, Change>;
}

/** What several nodes share: conversations, their members, the events and the sessions. */
export class Ledger implements EventLog {
  readonly ended = new Set<string>();
  /** How often missing events were asked for. */
  reads = 0;
  /** Set to have every question fail. */
  broken = false;
  /** What the answer to a question for what was missed waits for. */
  gate: Promise<void> = Promise.resolve();
  private readonly conversations = new Map<string, Conversation>();
  private readonly uncounted: { at: number; announcement: Change }[] = [];
  private readonly ids = new Map<string, number>();

  /** An account's id. */
  id(username: string): number {
    const id = this.ids.get(username) ?? this.ids.size + 1;
    this.ids.set(username, id);
    return id;
  }

  open(conversation: string, ...members: string[]): void {
    this.conversations.set(conversation, {
      seq: 0,
      members: new Set(members),
      left: new Map(),
      changedAt: Date.now(),
      events: new Map(),
    });
  }

  /** Commits a message, and returns what is to be announced of it. */
  say(conversation: string, text: string): Change {
    const params = { conversation_id: conversation, ids: [text] };
    return this.commit(conversation, (seq) =>
      counted("events.messageDeleted", params, conversation, seq),
    );
  }

  /** Commits that a message is whole. */
  complete(conversation: string, id: string, content = ""): Change {
    const message = { id, content } as EventParams<"events.messageComplete">;
    const to = Buffer.byteLength(content);
    const stream = { message: id, from: 0, to, begins: false, ends: true };
    return this.commit(conversation, (seq) =>
      counted("events.messageComplete", message, conversation, seq, { stream }),
    );
  }

  async messageText(): Promise<null> {
    return null;
  }

  /** Commits that somebody joins: the others hear of a change, the newcomer of the conversation. */
  join(conversation: string, username: string): Change[] {
    const { members, left } = this.find(conversation);
    members.add(username);
    left.delete(username);
    const changed = this.commit(conversation, (seq) =>
      counted("events.conversationUpdated", this.updated(conversation), conversation, seq),
    );
    const shared = this.shared(conversation);
    const users = [username];
    return [changed, conversationShared(shared, users)];
  }

  private updated(conversation: string) {
    return { ...this.shared(conversation), changes: [] };
  }

  leave(conversation: string, username: string): Change {
    const { members, left, seq: before } = this.find(conversation);
    members.delete(username);
    left.set(username, before + 1);
    const leaves = { conversation, users: [username] };
    return this.commit(conversation, (seq) =>
      counted("events.conversationUpdated", this.updated(conversation), conversation, seq, {
        leaves,
      }),
    );
  }

  /** Commits that somebody has read up to a value, which no counter counts. */
  read(conversation: string, username: string, last_read_seq: number): Change {
    const params = { conversation_id: conversation, reader: human(username), last_read_seq };
    return this.keep(durable({ method: "events.chatRead", params }, { conversation }));
  }

  /** Commits that somebody hides a message from themselves, which no counter counts either. */
  hide(conversation: string, username: string, text: string): Change {
    const params = { conversation_id: conversation, ids: [text] };
    const to = { users: [username] };
    return this.keep(durable({ method: "events.messageDeleted", params }, to));
  }

  /** Forgets changes that no counter counts. */
  forgetUncounted(): void {
    this.isComplete = false;
  }
  private isComplete = true;

  /** Forgets events up to a value, as a log does in time. */
  forget(conversation: string, upTo: number): void {
    const { events } = this.find(conversation);
    for (const seq of events.keys()) if (seq <= upTo) events.delete(seq);
  }

  counters(username: string): Counter[] {
    return [...this.conversations]
      .filter(([, { members }]) => members.has(username))
      .map(([uuid, { seq }]) => ({ uuid, seq }));
  }

  async eventsSince(conversation: string, since: number): Promise<Change[] | null> {
    this.reads++;
    this.check();
    const { seq, events } = this.find(conversation);
    const missing = Array.from({ length: seq - since }, (_, place) => since + 1 + place);
    const found = missing.flatMap((each) => events.get(each) ?? []);
    await this.gate;
    return found.length === missing.length ? found : null;
  }

  async changedSince(accountIds: readonly number[], since: number) {
    this.check();
    const usernames = new Map([...this.ids].map(([username, id]) => [id, username]));
    return [...this.conversations]
      .filter(([, { changedAt }]) => changedAt >= since)
      .flatMap(([conversation, { seq, members, left }]) =>
        accountIds.flatMap((account_id) => {
          const username = usernames.get(account_id) ?? "";
          if (members.has(username)) return [{ account_id, conversation, seq }];
          return left.has(username) ? [{ account_id, conversation, seq, left: true }] : [];
        }),
      );
  }

  async changedConversations(since: number): Promise<Counter[]> {
    this.check();
    return [...this.conversations]
      .filter(([, { changedAt }]) => changedAt >= since)
      .map(([uuid, { seq }]) => ({ uuid, seq }));
  }

  async uncountedSince(since: number): Promise<Change[] | null> {
    this.check();
    if (!this.isComplete) return null;
    const found = this.uncounted.filter(({ at }) => at >= since);
    this.isAsked = true;
    await this.gate;
    return found.map(({ announcement }) => announcement);
  }
  /** Whether changes that no counter counts were asked for. */
  isAsked = false;

  async endedSessions(ids: readonly string[]): Promise<string[]> {
    this.check();
    return ids.filter((id) => this.ended.has(id));
  }

  async sharedConversation(conversation: string): Promise<SharedConversation> {
    this.check();
    return this.shared(conversation);
  }

  private shared(conversation: string): SharedConversation {
    const { seq, members } = this.find(conversation);
    return {
      id: conversation,
      kind: "group",
      title: "Test",
      participants: [...members].map(human),
      created_by: human("alice"),
      admin: null,
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
      seq,
      last_message: null,
      participant_count: members.size,
    };
  }

  private keep(announcement: Change): Change {
    this.uncounted.push({ at: Date.now(), announcement });
    return announcement;
  }

  private commit(conversation: string, make: (seq: number) => Change): Change {
    const found = this.find(conversation);
    found.seq++;
    found.changedAt = Date.now();
    const announcement = make(found.seq);
    found.events.set(found.seq, announcement);
    return announcement;
  }

  private find(conversation: string): Conversation {
    const found = this.conversations.get(conversation);
    if (!found) throw new Error("no such conversation");
    return found;
  }

  private check(): void {
    if (this.broken) throw new Error("the store cannot be reached");
  }
}

/** Events as people would read them: the text of messages, and who joined or left. */
export const texts = (heard: readonly { method: string; params: unknown }[]): string[] =>
  heard.map(({ method, params }) => {
    const { ids } = params as { ids?: string[] };
    return ids?.[0] ?? method.replace("events.", "");
  });

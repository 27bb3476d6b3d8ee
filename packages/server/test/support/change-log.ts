import type { EventParams, SharedConversation } from "@parley/protocol";
import type { Counter } from "../../src/changes/bus.ts";
import {
  type Change,
  conversationShared,
  counted,
  type DurableChange,
  durable,
  type EventChange,
} from "../../src/changes/change.ts";
import type { ChangeLog, Cursor, LogEntry } from "../../src/changes/log.ts";
import type { Store } from "../../src/store/store.ts";
import { human } from "./broker.ts";

interface Conversation {
  seq: number;
  members: Set<string>;
}

/** What several nodes share, in memory: conversations, their members, and the change log. */
export class TestChangeLog implements ChangeLog {
  /** Number of reads of the log. */
  reads = 0;
  /** Makes every read fail. */
  failing = false;
  /** Reads of the log wait for this. */
  gate: Promise<void> = Promise.resolve();
  /** The node that commits. */
  committer = "committer";
  private entries: LogEntry[] = [];
  private prunedTo: Cursor = 0;
  private readonly conversations = new Map<string, Conversation>();
  private readonly ids = new Map<string, number>();

  accountId(username: string): number {
    const id = this.ids.get(username) ?? this.ids.size + 1;
    this.ids.set(username, id);
    return id;
  }

  addConversation(conversation: string, ...members: string[]): void {
    this.conversations.set(conversation, {
      seq: 0,
      members: new Set(members),
    });
  }

  /** Commits a change that stands for a message, and returns it. */
  commitMessage(conversation: string, text: string): Change {
    const params = { conversation_id: conversation, ids: [text] };
    return this.commit(conversation, (seq) =>
      counted("events.messageDeleted", params, conversation, seq),
    );
  }

  /** Commits the end of a streaming message. */
  commitCompletion(conversation: string, id: string, content = ""): Change {
    const message = { id, content } as EventParams<"events.messageComplete">;
    const to = Buffer.byteLength(content);
    const stream = { message: id, from: 0, to, begins: false, ends: true };
    return this.commit(conversation, (seq) =>
      counted("events.messageComplete", message, conversation, seq, { stream }),
    );
  }

  readText = async (): Promise<null> => null;

  /** Commits that an account joins: a change for the other members, the conversation for the account. */
  commitJoin(conversation: string, username: string): Change[] {
    this.find(conversation).members.add(username);
    const changed = this.commit(conversation, (seq) =>
      counted("events.conversationUpdated", this.updated(conversation), conversation, seq),
    );
    const shared = this.shared(conversation);
    const users = [username];
    return [changed, this.append(conversationShared(shared, users))];
  }

  private updated(conversation: string) {
    return { ...this.shared(conversation), changes: [] };
  }

  commitLeave(conversation: string, username: string): Change {
    this.find(conversation).members.delete(username);
    const leaves = { conversation, users: [username] };
    return this.commit(conversation, (seq) =>
      counted("events.conversationUpdated", this.updated(conversation), conversation, seq, {
        leaves,
      }),
    );
  }

  /** Commits a read position: a durable change that increments no counter. */
  commitRead(conversation: string, username: string, last_read_seq: number): Change {
    const params = { conversation_id: conversation, reader: human(username), last_read_seq };
    return this.append(durable({ method: "events.chatRead", params }, { conversation }));
  }

  /** Commits that an account hides a message: a durable change that increments no counter. */
  commitHide(conversation: string, username: string, text: string): Change {
    const params = { conversation_id: conversation, ids: [text] };
    const to = { users: [username] };
    return this.append(durable({ method: "events.messageDeleted", params }, to));
  }

  /** Commits a new name of an account for several others: a durable change that increments no counter. */
  commitName(username: string, users: readonly string[]): EventChange<"durable"> {
    const params = human(username);
    const change = durable({ method: "events.accountUpdated", params }, { users });
    this.append(change);
    return change;
  }

  commitSessionEnd(session_id: string): Change {
    return this.append({ kind: "session_ended", session_id });
  }

  /** Prunes all entries. */
  prune(): void {
    this.append({ kind: "turns_queued" });
    this.prunedTo = this.entries.length;
  }

  counters(username: string): Counter[] {
    return [...this.conversations]
      .filter(([, { members }]) => members.has(username))
      .map(([uuid, { seq }]) => ({ uuid, seq }));
  }

  async head(): Promise<Cursor> {
    return this.entries.length;
  }

  async read(
    after: Cursor,
    _limit?: number,
    skippedNode?: string,
  ): Promise<readonly LogEntry[] | null> {
    this.reads++;
    this.failIfAsked();
    const found = this.entries
      .slice(after)
      .map((entry) => (entry.node === skippedNode ? { ...entry, changes: [] } : entry));
    await this.gate;
    return after < this.prunedTo ? null : found;
  }

  readConversation = async (conversation: string, users: readonly string[]) => {
    this.failIfAsked();
    const { members } = this.find(conversation);
    const participants = users.filter((username) => members.has(username));
    return { shared: this.shared(conversation), participants };
  };

  /** The part of a store that the change stream uses. */
  store(): Store {
    const store = { changes: this, read: (unit: (tx: never) => unknown) => unit({} as never) };
    return { ...store, onCommit: () => {} } as unknown as Store;
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
      picture_id: null,
    };
  }

  private append<Made extends DurableChange>(change: Made): Made {
    const { committer: node } = this;
    this.entries.push({ cursor: this.entries.length + 1, node, changes: [change] });
    return change;
  }

  private commit(conversation: string, make: (seq: number) => DurableChange): Change {
    const found = this.find(conversation);
    found.seq++;
    return this.append(make(found.seq));
  }

  private find(conversation: string): Conversation {
    const found = this.conversations.get(conversation);
    if (!found) throw new Error("no such conversation");
    return found;
  }

  private failIfAsked(): void {
    if (this.failing) throw new Error("the store cannot be reached");
  }
}

/** A short form of events: the text of a message, otherwise the name of the event. */
export const summaries = (events: readonly { method: string; params: unknown }[]): string[] =>
  events.map(({ method, params }) => {
    const { ids } = params as { ids?: string[] };
    return ids?.[0] ?? method.replace("events.", "");
  });

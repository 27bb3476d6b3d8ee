import type { ConversationRecord } from "../conversations.ts";

/** The columns of a counters row that every message changes. */
export interface Counters {
  seq: number;
  humans: number;
  agents: number;
}

interface Known {
  readonly counters: Counters;
  /** By viewer. Their `seq` is that of the time when they were read. */
  readonly records: Map<number, ConversationRecord>;
}

/** How many records are kept. Beyond it all are dropped. */
const MOST_RECORDS = 20_000;

/**
 * What the writer knows of conversations without reading them again for every message. It is the
 * only one that changes them, apart from commands of operators, whose commits show in the version of
 * the data.
 */
export class KnownConversations {
  readonly #known = new Map<string, Known>();
  readonly #uuids = new Map<number, string>();
  #records = 0;

  record(uuid: string, viewerId: number): ConversationRecord | undefined {
    const known = this.#known.get(uuid);
    const record = known?.records.get(viewerId);
    return known && record && { ...record, seq: known.counters.seq };
  }

  /** The counters of a conversation, which a send updates in place once it has written them. */
  counters(uuid: string): Counters | undefined {
    return this.#known.get(uuid)?.counters;
  }

  add(record: ConversationRecord, viewerId: number, counters: Counters): void {
    if (++this.#records > MOST_RECORDS) this.clear();
    const known = this.#known.get(record.uuid) ?? { counters, records: new Map() };
    this.#known.set(record.uuid, known);
    this.#uuids.set(record.id, record.uuid);
    known.records.set(viewerId, record);
  }

  /** Drops what a statement has changed: one conversation, or any if none is named. */
  drop(conversationId: number | null): void {
    if (conversationId === null) this.clear();
    else this.#known.delete(this.#uuids.get(conversationId) ?? "");
  }

  clear(): void {
    this.#known.clear();
    this.#uuids.clear();
    this.#records = 0;
  }
}

import type { EventChange } from "../changes/change.ts";
import type { Counter, Interest } from "./bus.ts";
import type { Subjects } from "./subjects.ts";
import { decodeEvent } from "./wire.ts";

export interface InterestsOptions {
  subjects: Subjects;
  /** Returns what ends the subscription. */
  subscribe(subject: string, receive: (payload: Uint8Array) => void): () => void;
  /** Resolves when the server has processed all subscriptions made so far. */
  settled(): Promise<void>;
  receive(change: EventChange): void;
  /** The first person here participates in the conversation. */
  opened(conversation: string): void;
  closed(conversation: string): void;
  begin(conversation: string, seq: number): void;
  /** Whether it is known from which counter value on the conversation is delivered. */
  hasBegun(conversation: string): boolean;
  /** Somebody joined: events may have been published before the subscription was active. */
  joined(): void;
}

/** Subscribes this node to the events of the people who have clients here, and of their conversations. */
export class Interests {
  /** The conversations of each person who has clients here. */
  private readonly people = new Map<string, ReadonlySet<string>>();
  private readonly conversations = new Map<string, { people: number; end(): void }>();
  private readonly options: InterestsOptions;

  constructor(options: InterestsOptions) {
    this.options = options;
  }

  hasPerson = (username: string): boolean => this.people.has(username);

  /** Whether a person has clients here that do not receive the conversation's events. */
  lacks(username: string, conversation: string): boolean {
    return this.people.get(username)?.has(conversation) === false;
  }

  hasConversation = (conversation: string): boolean => this.conversations.has(conversation);

  person(username: string): Interest {
    const { subjects, subscribe, settled, receive, begin, hasBegun, joined } = this.options;
    const mine = new Set<string>();
    let settling = 0;
    let isActive = false;
    let ended = false;
    const to = { users: [username] };
    this.people.set(username, mine);
    const end = subscribe(subjects.user(username), (payload) => receive(decodeEvent(payload, to)));

    const add = (conversation: string): void => {
      if (ended || mine.has(conversation)) return;
      mine.add(conversation);
      this.follow(conversation);
    };

    return {
      async follow(conversations: readonly Counter[]) {
        const added = conversations.filter(({ uuid }) => !mine.has(uuid));
        for (const { uuid } of added) add(uuid);
        const isCurrent = isActive && settling === 0 && added.every(({ uuid }) => hasBegun(uuid));
        if (ended || isCurrent) return false;
        settling++;
        await settled();
        settling--;
        isActive = true;
        return true;
      },
      begin: (conversations) => {
        for (const { uuid, seq } of conversations) begin(uuid, seq);
      },
      join(conversation, seq) {
        add(conversation);
        begin(conversation, seq);
        void settled().then(joined);
      },
      leave: (conversation) => {
        if (mine.delete(conversation)) this.unfollow(conversation);
      },
      has: (conversation) => mine.has(conversation),
      end: () => {
        if (ended) return;
        ended = true;
        this.people.delete(username);
        end();
        for (const conversation of mine) this.unfollow(conversation);
        mine.clear();
      },
    };
  }

  private follow(conversation: string): void {
    const known = this.conversations.get(conversation);
    if (known) {
      known.people++;
      return;
    }
    const { subjects, subscribe, receive, opened } = this.options;
    opened(conversation);
    const to = { conversation };
    const end = subscribe(subjects.conversation(conversation), (payload) =>
      receive(decodeEvent(payload, to)),
    );
    this.conversations.set(conversation, { people: 1, end });
  }

  private unfollow(conversation: string): void {
    const known = this.conversations.get(conversation);
    if (!known || --known.people > 0) return;
    known.end();
    this.conversations.delete(conversation);
    this.options.closed(conversation);
  }
}

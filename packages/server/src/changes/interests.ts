import type { Counter, Interest } from "./bus.ts";
import type { Subjects } from "./nats-link.ts";
import { decodeEvent } from "./nats-payloads.ts";
import type { Sequencer } from "./sequencer.ts";

export interface InterestsOptions {
  subjects: Subjects;
  /** Returns a function that unsubscribes. */
  subscribe(subject: string, receive: (payload: Uint8Array) => void): () => void;
  /** Resolves when the server has processed all subscriptions made so far. */
  settled(): Promise<void>;
  order: Sequencer;
  /** The last person here has left the conversation. */
  closed(conversation: string): void;
  /** Somebody joined: events may have been published before the subscription was active. */
  joined(): void;
}

/** Subscribes this node to the events of the people who have clients here, and of their conversations. */
export function createInterests(options: InterestsOptions) {
  const { subjects, subscribe, settled, order, closed, joined } = options;
  /** The people who have clients here, by username. */
  const people = new Map<string, Interest>();
  const conversations = new Map<string, { people: number; end(): void }>();

  /** Counts a participant of the conversation, and subscribes for the first one. */
  function addParticipant(conversation: string): void {
    const known = conversations.get(conversation);
    if (known) {
      known.people++;
      return;
    }
    order.open(conversation);
    const to = { conversation };
    const end = subscribe(subjects.conversation(conversation), (payload) =>
      order.receive(decodeEvent(payload, to)),
    );
    conversations.set(conversation, { people: 1, end });
  }

  /** Unsubscribes when the last participant is removed. */
  function removeParticipant(conversation: string): void {
    const known = conversations.get(conversation);
    if (!known || --known.people > 0) return;
    known.end();
    conversations.delete(conversation);
    order.close(conversation);
    closed(conversation);
  }

  function interestOf(username: string): Interest {
    const to = { users: [username] };
    const unsubscribe = subscribe(subjects.user(username), (payload) =>
      order.receive(decodeEvent(payload, to)),
    );
    const followed = new Set<string>();
    /** Number of calls of `follow` that wait for the server. */
    let settling = 0;
    /** Whether the subscription to the person's own events is active. */
    let isActive = false;
    let hasEnded = false;

    function add(conversation: string): void {
      if (hasEnded || followed.has(conversation)) return;
      followed.add(conversation);
      addParticipant(conversation);
    }

    return {
      async follow(counters: readonly Counter[]): Promise<boolean> {
        const added = counters.filter(({ uuid }) => !followed.has(uuid));
        for (const { uuid } of added) add(uuid);
        const hasBegun = ({ uuid }: Counter) => order.at(uuid) !== undefined;
        if (hasEnded || (isActive && settling === 0 && added.every(hasBegun))) return false;
        settling++;
        await settled();
        settling--;
        isActive = true;
        return true;
      },
      begin: (counters) => {
        for (const { uuid, seq } of counters) order.begin(uuid, seq);
      },
      join: (conversation, seq) => {
        add(conversation);
        order.begin(conversation, seq);
        // After the introduction, which is being delivered. This node may have published events before.
        queueMicrotask(() => order.claim(conversation));
        void settled().then(joined);
      },
      leave: (conversation) => {
        if (followed.delete(conversation)) removeParticipant(conversation);
      },
      has: (conversation) => followed.has(conversation),
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        people.delete(username);
        unsubscribe();
        for (const conversation of followed) removeParticipant(conversation);
        followed.clear();
      },
    };
  }

  return {
    hasPerson: (username: string) => people.has(username),
    /** Whether a person has clients here that do not receive the conversation's events. */
    lacks: (username: string, conversation: string) =>
      people.get(username)?.has(conversation) === false,
    hasConversation: (conversation: string) => conversations.has(conversation),
    person(username: string): Interest {
      const interest = interestOf(username);
      people.set(username, interest);
      return interest;
    },
  };
}

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
export class Interests {
  /** The people who have clients here, by username. */
  readonly #people = new Map<string, PersonInterest>();
  readonly #conversations = new Map<string, { people: number; end(): void }>();
  readonly #options: InterestsOptions;

  constructor(options: InterestsOptions) {
    this.#options = options;
  }

  hasPerson = (username: string): boolean => this.#people.has(username);

  /** Whether a person has clients here that do not receive the conversation's events. */
  lacks(username: string, conversation: string): boolean {
    return this.#people.get(username)?.has(conversation) === false;
  }

  hasConversation = (conversation: string): boolean => this.#conversations.has(conversation);

  person(username: string): Interest {
    const { subjects, subscribe, order } = this.#options;
    const to = { users: [username] };
    const end = subscribe(subjects.user(username), (payload) =>
      order.receive(decodeEvent(payload, to)),
    );
    const person = new PersonInterest(this, this.#options, () => {
      this.#people.delete(username);
      end();
    });
    this.#people.set(username, person);
    return person;
  }

  /** Counts a participant of the conversation, and subscribes for the first one. */
  addParticipant(conversation: string): void {
    const known = this.#conversations.get(conversation);
    if (known) {
      known.people++;
      return;
    }
    const { subjects, subscribe, order } = this.#options;
    order.open(conversation);
    const to = { conversation };
    const end = subscribe(subjects.conversation(conversation), (payload) =>
      order.receive(decodeEvent(payload, to)),
    );
    this.#conversations.set(conversation, { people: 1, end });
  }

  /** Unsubscribes when the last participant is removed. */
  removeParticipant(conversation: string): void {
    const known = this.#conversations.get(conversation);
    if (!known || --known.people > 0) return;
    known.end();
    this.#conversations.delete(conversation);
    this.#options.order.close(conversation);
    this.#options.closed(conversation);
  }
}

class PersonInterest implements Interest {
  readonly #conversations = new Set<string>();
  readonly #interests: Interests;
  readonly #options: InterestsOptions;
  readonly #unsubscribe: () => void;
  /** Number of calls of `follow` that wait for the server. */
  #settling = 0;
  /** Whether the subscription to the person's own events is active. */
  #isActive = false;
  #hasEnded = false;

  constructor(interests: Interests, options: InterestsOptions, unsubscribe: () => void) {
    this.#interests = interests;
    this.#options = options;
    this.#unsubscribe = unsubscribe;
  }

  async follow(conversations: readonly Counter[]): Promise<boolean> {
    const added = conversations.filter(({ uuid }) => !this.#conversations.has(uuid));
    for (const { uuid } of added) this.#add(uuid);
    const isCurrent =
      this.#isActive &&
      this.#settling === 0 &&
      added.every(({ uuid }) => this.#options.order.at(uuid) !== undefined);
    if (this.#hasEnded || isCurrent) return false;
    this.#settling++;
    await this.#options.settled();
    this.#settling--;
    this.#isActive = true;
    return true;
  }

  begin(conversations: readonly Counter[]): void {
    for (const { uuid, seq } of conversations) this.#options.order.begin(uuid, seq);
  }

  join(conversation: string, seq: number): void {
    const { order, settled, joined } = this.#options;
    this.#add(conversation);
    order.begin(conversation, seq);
    // After the introduction, which is being delivered. This node may have published events before.
    queueMicrotask(() => order.claim(conversation));
    void settled().then(joined);
  }

  leave(conversation: string): void {
    if (this.#conversations.delete(conversation)) this.#interests.removeParticipant(conversation);
  }

  has(conversation: string): boolean {
    return this.#conversations.has(conversation);
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#unsubscribe();
    for (const conversation of this.#conversations) this.#interests.removeParticipant(conversation);
    this.#conversations.clear();
  }

  #add(conversation: string): void {
    if (this.#hasEnded || this.#conversations.has(conversation)) return;
    this.#conversations.add(conversation);
    this.#interests.addParticipant(conversation);
  }
}

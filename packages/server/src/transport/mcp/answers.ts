import { closeCodes, type Message } from "@parley/protocol";
import type { Delivered } from "../../changes/bus.ts";
import { frameOf } from "../../changes/change.ts";
import type { Changes } from "../../changes/stream.ts";
import type { Hub } from "../../realtime/hub.ts";
import { type Client, conversationTopic } from "../../realtime/people.ts";
import { type Failure, rateLimited, unauthorized, unavailable } from "../../rules/failure.ts";
import type { Caller } from "../../security/caller.ts";

export type Answers = ReturnType<typeof createAnswers>;
export type FollowedAnswers = Awaited<ReturnType<Answers["follow"]>>;

export interface AnswersOptions {
  hub: Hub;
  changes: Pick<Changes, "listen">;
  socketsPerUser: number;
}

/** Follows the finished answers of agents in a conversation, for callers who wait for one. */
export function createAnswers({ hub, changes, socketsPerUser }: AnswersOptions) {
  const followers = new Map<string, Set<Follower>>();

  changes.listen((change: Delivered) => {
    if (change.kind !== "event" || change.name !== "events.messageComplete") return;
    const waiting = followers.get(change.at?.conversation_id ?? "");
    if (!waiting) return;
    const message = frameOf(change).params as Message;
    for (const follower of waiting) follower.receive(message);
  });

  function join(conversation: string, follower: Follower): void {
    followers.set(conversation, (followers.get(conversation) ?? new Set()).add(follower));
  }

  function leave(conversation: string, follower: Follower): void {
    const left = followers.get(conversation);
    left?.delete(follower);
    if (left?.size === 0) followers.delete(conversation);
  }

  return {
    /**
     * Follows a conversation for a person, as one of their sockets: it counts against
     * `sockets_per_user`, and ends with the session.
     */
    async follow(caller: Caller, conversation: string) {
      const { account } = caller;
      if (hub.limitedSockets(account) >= socketsPerUser) throw rateLimited(5, "too many sockets");
      const follower = new Follower(caller, conversation);
      join(conversation, follower);
      const person = hub.enter(account, follower);
      const end = () => {
        leave(conversation, follower);
        hub.leave(person, follower);
      };
      await hub.follow(person, [{ uuid: conversation, seq: 0 }]).catch((error) => {
        end();
        throw error;
      });
      return {
        /** Delivers what comes after this counter of the conversation, which was read after `follow`. */
        begin: (seq: number) => hub.listen(person, follower, [{ uuid: conversation, seq }]),
        /** The next finished message of an agent. Rejects when the signal aborts, or events are missed. */
        next: (signal: AbortSignal) => follower.next(signal),
        [Symbol.dispose]: end,
      };
    },
  };
}

/** To the hub it is a socket. It reads changes instead of frames, so it ignores most topics. */
class Follower implements Client {
  readonly id = Bun.randomUUIDv7();
  readonly session_id: string;
  readonly #topic: string;
  readonly #received: Message[] = [];
  #ended: Failure | null = null;
  #wake = () => {};

  constructor(caller: Caller, conversation: string) {
    this.session_id = caller.kind === "session" ? caller.session_id : "";
    this.#topic = conversationTopic(conversation);
  }

  subscribe(): void {}
  unsubscribe(): void {}
  isSubscribed(topic: string): boolean {
    return topic === this.#topic;
  }

  receive(message: Message): void {
    this.#received.push(message);
    this.#wake();
  }

  close(code: number, reason: string): void {
    this.#ended = code === closeCodes.signedOut ? unauthorized(reason) : unavailable(reason);
    this.#wake();
  }

  async next(signal: AbortSignal): Promise<Message> {
    for (;;) {
      const message = this.#received.shift();
      if (message) return message;
      if (this.#ended) throw this.#ended;
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }
}

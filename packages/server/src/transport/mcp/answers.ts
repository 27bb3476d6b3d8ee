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

/** Follows the finished answers of agents in a conversation, for callers who wait for one. */
export function createAnswers(hub: Hub, changes: Pick<Changes, "listen">, socketsPerUser: number) {
  const followers = new Map<string, Set<(message: Message) => void>>();

  changes.listen((change: Delivered) => {
    if (change.kind !== "event" || change.name !== "events.messageComplete") return;
    const waiting = followers.get(change.at?.conversation_id ?? "");
    if (!waiting) return;
    const message = frameOf(change).params as Message;
    for (const receive of waiting) receive(message);
  });

  return {
    /**
     * Follows a conversation for a person, as one of their sockets: it counts against
     * `sockets_per_user`, and ends with the session.
     */
    async follow(caller: Caller, conversation: string) {
      const { account } = caller;
      if (hub.limitedSockets(account) >= socketsPerUser) throw rateLimited(5, "too many sockets");
      const received: Message[] = [];
      let ended: Failure | null = null;
      let wake = () => {};
      /** To the hub it is a socket. It reads changes instead of frames, so it ignores most topics. */
      const client: Client = {
        id: Bun.randomUUIDv7(),
        session_id: caller.kind === "session" ? caller.session_id : "",
        isCall: true,
        subscribe: () => {},
        unsubscribe: () => {},
        isSubscribed: (topic) => topic === conversationTopic(conversation),
        send: () => {},
        close(code, reason) {
          ended = code === closeCodes.signedOut ? unauthorized(reason) : unavailable(reason);
          wake();
        },
      };
      const receive = (message: Message) => {
        received.push(message);
        wake();
      };
      const here = followers.get(conversation) ?? new Set();
      followers.set(conversation, here.add(receive));
      const person = hub.enter(account, client);
      const end = () => {
        here.delete(receive);
        if (here.size === 0 && followers.get(conversation) === here) followers.delete(conversation);
        hub.leave(person, client);
      };
      await hub.follow(person, [{ uuid: conversation, seq: 0 }]).catch((error) => {
        end();
        throw error;
      });
      return {
        /** Delivers what comes after this counter of the conversation, which was read after `follow`. */
        begin: (seq: number) => hub.listen(person, client, [{ uuid: conversation, seq }]),
        /** The next finished message of an agent. Rejects when the signal aborts, or events are missed. */
        async next(signal: AbortSignal): Promise<Message> {
          for (;;) {
            const message = received.shift();
            if (message) return message;
            if (ended) throw ended;
            signal.throwIfAborted();
            await new Promise<void>((resolve) => {
              wake = resolve;
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
          }
        },
        [Symbol.dispose]: end,
      };
    },
  };
}

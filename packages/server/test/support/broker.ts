import type { Account, EventFrame } from "@parley/protocol";
import type { Client } from "../../src/realtime/people.ts";

/** Publishes like the socket server: to the clients that are subscribed to the topic at that moment. */
export function broker() {
  const clients = new Set<FakeClient>();
  return {
    clients,
    publish: (topic: string, data: string) => {
      for (const client of clients) if (client.topics.has(topic)) client.received.push(data);
    },
  };
}

export class FakeClient implements Client {
  readonly id: string;
  readonly session_id: string;
  readonly topics = new Set<string>();
  readonly received: string[] = [];
  readonly closed: { code: number; reason: string }[] = [];
  /** Called when the socket is closed; real sockets leave the hub then. */
  onClose = () => {};
  constructor(id: string, session: string) {
    this.id = id;
    this.session_id = session;
  }
  subscribe = (topic: string) => void this.topics.add(topic);
  unsubscribe = (topic: string) => void this.topics.delete(topic);
  isSubscribed = (topic: string) => this.topics.has(topic);
  send = (data: string) => void this.received.push(data);
  backlog(): number {
    return 0;
  }

  cutOff(): void {}

  close(code: number, reason: string) {
    this.closed.push({ code, reason });
    this.onClose();
  }
  /** Returns and removes the events received since the last call. */
  events(): EventFrame[] {
    return this.received.splice(0).map((data) => JSON.parse(data) as EventFrame);
  }
}

export const human = (username: string): Account => ({
  username,
  kind: "human",
  display_name: username,
  version: 0,
});
